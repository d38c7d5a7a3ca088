/*
 * What is planned for one arm besides its command: variables, profile, the state it starts from.
 */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "engine/experiment/experiment-i.h"
#include "engine/run/profile-i.h"

int arm_add_env(struct engine_arm *arm, const char *assignment, struct err *err)
{
	if (!VEC_ONE_MORE(arm->env, arm->n_env))
		return err_nomem(err);
	arm->env[arm->n_env] = strdup(assignment);
	if (!arm->env[arm->n_env])
		return err_nomem(err);
	arm->n_env++;
	return 0;
}

int arm_copy_plan(struct engine_arm *arm, const struct engine_arm *of, struct err *err)
{
	int r = 0;

	arm->command = of->command ? strdup(of->command) : NULL;
	arm->profile = of->profile ? strdup(of->profile) : NULL;
	arm->from = of->from ? strdup(of->from) : NULL;
	arm->after = of->after ? strdup(of->after) : NULL;
	if ((of->command && !arm->command) || (of->profile && !arm->profile) ||
	    (of->from && !arm->from) || (of->after && !arm->after))
		return err_nomem(err);
	for (size_t i = 0; i < of->n_env && r >= 0; i++)
		r = arm_add_env(arm, of->env[i], err);
	return r < 0 || of->n_inner == 0 ? r : inner_copy_plan(arm, of, err);
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

static int set_text(char **to, const char *text, struct err *err)
{
	char *copy = strdup(text);

	if (!copy)
		return err_nomem(err);
	free(*to);
	*to = copy;
	return 0;
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
		return set_text(&arm->profile, what, err);
	case ENGINE_ARM_BASE:
		return set_text(&arm->from, what, err);
	case ENGINE_ARM_AFTER:
		break;
	}
	return set_text(&arm->after, what, err);
}
