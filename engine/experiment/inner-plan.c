/*
 * The plan inside of an arm: its arms, checks and score are its own; everything else comes from the
 * whole, whose limits it can only narrow.
 */
#include <errno.h>

#include "base/text.h"
#include "engine/experiment/experiment-i.h"

/* --- what cannot be ------------------------------------------------------------------------ */

static int check_arm(const struct engine_experiment *x, const struct engine_arm *arm, size_t level,
		     struct err *err)
{
	if (level + 1 == ENGINE_LEVELS_MAX)
		return err_set(err, -EINVAL,
			       "arm '%s' is %d levels deep and can have no arms inside of it",
			       arm->name, ENGINE_LEVELS_MAX);
	if (arm->inner->n_arms == 0)
		return err_set(err, -EINVAL, "there is no arm inside of arm '%s'", arm->name);
	if (x->repeat > 1)
		return err_set(err, -EINVAL, "arm '%s' has arms inside and cannot be repeated",
			       arm->name);
	if (x->on.queue)
		return err_set(err, -EINVAL,
			       "arm '%s' has arms inside, which run here: leave '--on' out",
			       arm->name);
	if (score_is_run(x) && !x->score_of && x->n_checks == 0)
		return err_set(err, -EINVAL,
			       "arm '%s' has arms inside, so its command alone cannot be the "
			       "score: %s:COMMAND",
			       arm->name, engine_score_name(x->score));
	return 0;
}

static int check_level(const struct engine_experiment *x, size_t level, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++) {
		const struct engine_arm *arm = &x->arms[i];

		if (arm->n_inner == 0)
			continue;
		r = check_arm(x, arm, level, err);
		if (r < 0)
			return r;
		r = after_check(arm->inner, err);
		if (r < 0)
			return r;
		r = check_level(arm->inner, level + 1, err);
	}
	return r;
}

int inner_check_count(const struct engine_experiment *x, struct err *err)
{
	if (engine_arms_count(x) <= ENGINE_ARMS_MAX)
		return 0;
	return err_set(err, -EINVAL, "with those inside of others there are more than %d arms",
		       ENGINE_ARMS_MAX);
}

int inner_check(const struct engine_experiment *x, struct err *err)
{
	const int r = check_level(x, 0, err);

	return r < 0 ? r : inner_check_count(x, err);
}

/* --- what it has from the whole ------------------------------------------------------------ */

/* Of limits 0 is none. */
static void narrow(uint64_t *inner, uint64_t outer)
{
	if (*inner == ENGINE_UNSAID || *inner == 0 ||
	    (outer != ENGINE_UNSAID && outer != 0 && outer < *inner))
		*inner = outer;
}

static void narrow_limits(struct engine_run_limits *inner, const struct engine_run_limits *outer)
{
	narrow(&inner->mem, outer->mem);
	narrow(&inner->cpus_milli, outer->cpus_milli);
	narrow(&inner->pids, outer->pids);
	narrow(&inner->time_ms, outer->time_ms);
	narrow(&inner->disk, outer->disk);
	narrow(&inner->inodes, outer->inodes);
	narrow(&inner->fsize, outer->fsize);
	narrow(&inner->nofile, outer->nofile);
	narrow(&inner->output, outer->output);
	narrow(&inner->net_out, outer->net_out);
}

/* Variables of the whole, of the arm, and its own; a later one of the same name counts. */
static int join_env(struct engine_experiment *inner, const struct engine_experiment *x,
		    const struct engine_arm *arm, struct err *err)
{
	CLEANUP(engine_experiment_done)
	struct engine_experiment own = { .env = inner->env, .n_env = inner->n_env };
	int r;

	inner->env = NULL;
	inner->n_env = 0;
	r = texts_add_all(&inner->env, &inner->n_env, x->env, x->n_env, err);
	if (r < 0)
		return r;
	r = texts_add_all(&inner->env, &inner->n_env, arm->env, arm->n_env, err);
	return r < 0 ? r : texts_add_all(&inner->env, &inner->n_env, own.env, own.n_env, err);
}

static int inherit_lists(struct engine_experiment *inner, const struct engine_experiment *x,
			 struct err *err)
{
	int r =
	    texts_add_all(&inner->pass_env, &inner->n_pass_env, x->pass_env, x->n_pass_env, err);

	if (r < 0)
		return r;
	r = texts_add_all(&inner->ro, &inner->n_ro, x->ro, x->n_ro, err);
	if (r < 0)
		return r;
	r = texts_add_all(&inner->within, &inner->n_within, x->within, x->n_within, err);
	return r < 0 ? r
		     : texts_add_all(&inner->allow_missing, &inner->n_allow_missing,
				     x->allow_missing, x->n_allow_missing, err);
}

static int inherit(const struct engine_experiment *x, struct engine_arm *arm, struct err *err)
{
	struct engine_experiment *inner = arm->inner;
	int r = text_set(&inner->name, err, "%s/%s", x->name, arm->name);

	if (r < 0)
		return r;
	r = text_copy(&inner->project, x->project, err);
	if (r < 0)
		return r;
	r = text_copy(&inner->cwd, x->cwd, err);
	if (r < 0)
		return r;
	r = text_copy(&inner->profile, arm->profile ? arm->profile : x->profile, err);
	if (r < 0)
		return r;
	r = text_copy(&inner->net, x->net, err);
	if (r < 0)
		return r;
	r = join_env(inner, x, arm, err);
	if (r < 0)
		return r;
	r = inherit_lists(inner, x, err);
	if (r < 0)
		return r;
	inner->owner = x->owner;
	inner->keep = x->keep == ENGINE_KEEP_ALL ? ENGINE_KEEP_ALL : ENGINE_KEEP_NONE;
	if (inner->rounds == 0)
		inner->rounds = score_rounds(inner);
	narrow_limits(&inner->limits, &x->limits);
	return 0;
}

int inner_complete(struct engine_experiment *x, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++) {
		if (x->arms[i].n_inner == 0)
			continue;
		r = inherit(x, &x->arms[i], err);
		if (r < 0)
			return r;
		r = inner_complete(x->arms[i].inner, err);
	}
	return r;
}
