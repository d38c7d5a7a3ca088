/*
 * A plan is made complete before anything is done: names, states that stay what they are, repetitions, and limits of
 * the whole as limits of each arm.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/sys.h"
#include "engine/experiment/experiment-i.h"

#define NAME_MAX_LEN 24 /* of an experiment: the names of its clones are made of it */

/* A clone goes on changing, so arms start from a snapshot of it; *text becomes the snapshot's id. */
static int fix_state(struct engine *e, char **text, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(state_done) struct state state = { 0 };
	struct store *s;
	char *id;
	int r = *text ? engine_store(e, STORE_READ, &s, err) : 0;

	if (r < 0 || !*text)
		return r;
	r = state_find(e, s, *text, &state, err);
	if (r < 0)
		return r;
	if (state.kind == STATE_CLONE) {
		const struct engine_take_options options = { .clone = *text };

		r = engine_take(e, &options, &taken, err);
		if (r < 0)
			return r;
		id = strdup(taken.snapshot.id);
	} else if (state.kind == STATE_SNAPSHOT) {
		id = strdup(state.text);
	} else {
		free(*text);
		*text = NULL;
		return 0;
	}
	if (!id)
		return err_nomem(err);
	free(*text);
	*text = id;
	return 0;
}

static int repeat_arm(struct engine_experiment *x, const struct engine_arm *of,
		      struct engine_arm *list, struct err *err)
{
	for (uint64_t k = 0; k < x->repeat; k++) {
		struct engine_arm *arm = &list[k];

		arm->group = strdup(of->name);
		arm->command = strdup(of->command);
		arm->profile = of->profile ? strdup(of->profile) : NULL;
		arm->from = of->from ? strdup(of->from) : NULL;
		arm->env = calloc(of->n_env + 1, sizeof(*arm->env));
		if (asprintf(&arm->name, "%s.%llu", of->name, (unsigned long long)k + 1) < 0)
			arm->name = NULL;
		if (!arm->group || !arm->command || !arm->name || !arm->env)
			return err_nomem(err);
		for (; arm->n_env < of->n_env; arm->n_env++) {
			arm->env[arm->n_env] = strdup(of->env[arm->n_env]);
			if (!arm->env[arm->n_env])
				return err_nomem(err);
		}
	}
	return 0;
}

static int repeat_arms(struct engine_experiment *x, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment plain = { 0 };
	int r = 0;

	if (x->repeat <= 1)
		return 0;
	if (x->repeat > ENGINE_ARMS_MAX / x->n_arms)
		return err_set(err, -EINVAL, "with the repetitions there are more than %d arms",
			       ENGINE_ARMS_MAX);
	plain.arms = x->arms;
	plain.n_arms = x->n_arms;
	x->n_arms = 0;
	x->arms = calloc(plain.n_arms * x->repeat, sizeof(*x->arms));
	if (!x->arms)
		return err_nomem(err);
	for (size_t i = 0; i < plain.n_arms && r >= 0; i++) {
		x->n_arms += x->repeat;
		r = repeat_arm(x, &plain.arms[i], &x->arms[i * x->repeat], err);
	}
	return r;
}

/* Limits of the whole become limits of the arms, whose sum cannot exceed them. */
static int share_limits(struct engine_experiment *x, struct err *err)
{
	struct engine_run_limits *l = &x->limits;
	uint64_t share;

	if (x->jobs == 0)
		x->jobs = sys_processors();
	if (x->jobs > x->n_arms)
		x->jobs = x->n_arms;
	if (x->all_mem > 0) {
		share = l->mem == ENGINE_UNSAID || l->mem == 0 ? x->all_mem / x->jobs : l->mem;
		if (share > x->all_mem)
			return err_set(err, -EINVAL,
				       "an arm may use more memory than the whole experiment");
		if (share == 0)
			return err_set(err, -EINVAL,
				       "--all-mem is too little for %llu arms at once",
				       (unsigned long long)x->jobs);
		l->mem = share;
		if (x->jobs > x->all_mem / share)
			x->jobs = x->all_mem / share;
	}
	if (x->all_disk > 0) {
		/* Of each arm there are two clones: its own, and the one that is judged. */
		share = x->all_disk / x->n_arms / 2;
		if (share == 0)
			return err_set(err, -EINVAL, "--all-disk is too little for %zu arms",
				       x->n_arms);
		if (l->disk == ENGINE_UNSAID || l->disk == 0 || l->disk > share)
			l->disk = share;
	}
	return 0;
}

static int check_free(struct engine *e, const char *clone, struct err *err)
{
	if (!engine_has_clone(e, clone))
		return 0;
	return err_set(err, -EEXIST, "there is a clone '%s', as an arm would have it", clone);
}

static int name_clones(struct engine *e, struct engine_experiment *x, struct err *err)
{
	for (size_t i = 0; i < x->n_arms; i++) {
		struct engine_arm *arm = &x->arms[i];
		AUTO_FREE char *judge = NULL;
		int r;

		if (asprintf(&arm->clone, "%s-%s", x->name, arm->name) < 0) {
			arm->clone = NULL;
			return err_nomem(err);
		}
		if (asprintf(&judge, "%s" JUDGE_SUFFIX, arm->clone) < 0) {
			judge = NULL;
			return err_nomem(err);
		}
		r = check_free(e, arm->clone, err);
		if (r >= 0)
			r = check_free(e, judge, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int pick_name(struct engine *e, struct engine_experiment *x, struct err *err)
{
	char name[CLONE_NAME_MAX + 1];
	int r = 0;

	if (x->name && strlen(x->name) > NAME_MAX_LEN)
		return err_set(err, -EINVAL, "the name '%.40s' is longer than %d bytes", x->name,
			       NAME_MAX_LEN);
	if (x->name)
		return clone_check_name(x->name, err);
	for (int i = 0; i < 100 && !x->name && r >= 0; i++) {
		CLEANUP(engine_experiment_done) struct engine_experiment other = { 0 };

		r = words_pick(name, err);
		if (r >= 0 && experiment_read(e, name, &other, NULL) == -ENOENT)
			x->name = strdup(name);
	}
	return r < 0 || x->name ? r : err_nomem(err);
}

/* A number that no other experiment has, and no clone that was made by hand. */
static int pick_owner(struct engine_experiment *x, struct err *err)
{
	int r = sys_random(&x->owner, sizeof(x->owner));

	if (r < 0)
		return err_set(err, r, "no random bytes");
	x->owner = (x->owner & INT64_MAX) | 1;
	return 0;
}

int plan_complete(struct engine *e, struct engine_experiment *x, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s = NULL;
	int r;

	if (x->n_arms == 0)
		return err_set(err, -EINVAL, "an experiment needs an arm: --arm NAME=COMMAND");
	if (engine_has_store(e)) {
		r = engine_store(e, STORE_READ, &s, err);
		if (r < 0)
			return r;
	}
	r = project_choose(e, s, NULL, &project, err);
	if (r < 0)
		return r;
	x->cwd = strdup(path_is_below(e->dir, project.path) ? e->dir : project.path);
	x->project = TAKE_PTR(project.path);
	if (!x->cwd)
		return err_nomem(err);
	r = pick_owner(x, err);
	if (r >= 0)
		r = fix_state(e, &x->from, err);
	for (size_t i = 0; i < x->n_arms && r >= 0; i++)
		r = fix_state(e, &x->arms[i].from, err);
	if (r >= 0)
		r = repeat_arms(x, err);
	if (r >= 0)
		r = share_limits(x, err);
	if (r >= 0)
		r = pick_name(e, x, err);
	return r < 0 ? r : name_clones(e, x, err);
}
