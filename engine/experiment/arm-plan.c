/*
 * The plan of one arm besides its command: variables, profile, the state it starts from, and the
 * experiment inside of it.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/run/profile-i.h"

int arm_add_env(struct engine_arm *arm, const char *assignment, struct err *err)
{
	return texts_add(&arm->env, &arm->n_env, assignment, err);
}

static int copy_arms(struct engine_experiment *x, const struct engine_experiment *of,
		     struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < of->n_arms && r >= 0; i++) {
		if (!VEC_ONE_MORE(x->arms, x->n_arms))
			return err_nomem(err);
		x->arms[x->n_arms] = (struct engine_arm){ .name = strdup(of->arms[i].name) };
		if (!x->arms[x->n_arms++].name)
			return err_nomem(err);
		r = arm_copy_plan(&x->arms[x->n_arms - 1], &of->arms[i], err);
	}
	return r;
}

static int copy_inner(struct engine_arm *arm, const struct engine_arm *of, struct err *err)
{
	const struct engine_experiment *from = of->inner;
	struct engine_experiment *x;
	int r = inner_add(arm, err);

	if (r < 0)
		return r;
	x = arm->inner;
	x->score = from->score;
	x->higher = from->higher;
	x->rounds = from->rounds;
	x->jobs = from->jobs;
	x->stop_after = from->stop_after;
	x->limits = from->limits;
	r = text_copy(&x->file, from->file, err);
	if (r < 0)
		return r;
	r = text_copy(&x->score_of, from->score_of, err);
	if (r < 0)
		return r;
	r = texts_add_all(&x->checks, &x->n_checks, from->checks, from->n_checks, err);
	if (r < 0)
		return r;
	r = texts_add_all(&x->env, &x->n_env, from->env, from->n_env, err);
	return r < 0 ? r : copy_arms(x, from, err);
}

int arm_copy_plan(struct engine_arm *arm, const struct engine_arm *of, struct err *err)
{
	int r = text_copy(&arm->command, of->command, err);

	if (r < 0)
		return r;
	r = text_copy(&arm->profile, of->profile, err);
	if (r < 0)
		return r;
	r = text_copy(&arm->from, of->from, err);
	if (r < 0)
		return r;
	r = text_copy(&arm->after, of->after, err);
	if (r < 0)
		return r;
	r = texts_add_all(&arm->env, &arm->n_env, of->env, of->n_env, err);
	return r < 0 || of->n_inner == 0 ? r : copy_inner(arm, of, err);
}

/* "ARM:WHAT"; names of arms that a matrix makes have colons only in values, which are longer names. */
static struct engine_arm *find_arm(const struct engine_experiment *x, const char *text,
				   const char **ret)
{
	struct engine_arm *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < x->n_arms; i++) {
		const size_t len = strlen(x->arms[i].name);

		if (strncmp(x->arms[i].name, text, len) == 0 && text[len] == ':' &&
		    (!best || len > longest)) {
			best = &x->arms[i];
			longest = len;
		}
	}
	*ret = text + longest + 1;
	return best;
}

static int set_env(struct engine_arm *arm, const char *text, struct err *err)
{
	AUTO_FREE char *name = strndup(text, strcspn(text, "="));

	if (!name)
		return err_nomem(err);
	if (!strchr(text, '=') || !profile_is_variable(name))
		return err_set(err, -EINVAL, "'%.60s' of arm '%s' is not NAME=VALUE", text,
			       arm->name);
	return arm_add_env(arm, text, err);
}

int engine_experiment_set(struct engine_experiment *x, enum engine_arm_option option,
			  const char *text, struct err *err)
{
	static const char *const wants[] = { [ENGINE_ARM_ENV] = "NAME=VALUE",
					     [ENGINE_ARM_PROFILE] = "PROFILE",
					     [ENGINE_ARM_BASE] = "STATE",
					     [ENGINE_ARM_AFTER] = "ARM" };
	const char *what;
	struct engine_arm *arm = find_arm(x, text, &what);

	if (!arm)
		return err_set(err, -EINVAL, "'%.100s' begins with the name of no arm: ARM:%s",
			       text, wants[option]);
	if (*what == '\0')
		return err_set(err, -EINVAL, "nothing follows '%.100s': ARM:%s", text,
			       wants[option]);
	switch (option) {
	case ENGINE_ARM_ENV:
		return set_env(arm, what, err);
	case ENGINE_ARM_PROFILE:
		return text_copy(&arm->profile, what, err);
	case ENGINE_ARM_BASE:
		return text_copy(&arm->from, what, err);
	case ENGINE_ARM_AFTER:
		break;
	}
	return text_copy(&arm->after, what, err);
}
