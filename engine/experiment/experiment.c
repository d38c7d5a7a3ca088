#include "engine/api/experiment.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "engine/experiment/experiment-i.h"

/* --- names --------------------------------------------------------------------------------- */

const char *engine_score_name(enum engine_score score)
{
	static const char *const names[] = {
		[ENGINE_SCORE_NONE] = "none", [ENGINE_SCORE_COMMAND] = "command",
		[ENGINE_SCORE_TIME] = "time", [ENGINE_SCORE_CPU] = "cpu",
		[ENGINE_SCORE_MEM] = "mem",   [ENGINE_SCORE_LINES] = "lines",
		[ENGINE_SCORE_SIZE] = "size",
	};

	return names[score];
}

const char *engine_arm_state_name(enum engine_arm_state state)
{
	static const char *const names[] = {
		[ENGINE_ARM_WAITING] = "waiting",   [ENGINE_ARM_RUNNING] = "running",
		[ENGINE_ARM_CHECKING] = "checking", [ENGINE_ARM_PASSED] = "passed",
		[ENGINE_ARM_FAILED] = "failed",     [ENGINE_ARM_CHECK_FAILED] = "check-failed",
		[ENGINE_ARM_LIMIT] = "limit",       [ENGINE_ARM_UNSCORED] = "unscored",
		[ENGINE_ARM_STOPPED] = "stopped",   [ENGINE_ARM_LOST] = "lost",
	};

	return names[state];
}

bool engine_arm_is_over(enum engine_arm_state state)
{
	return state >= ENGINE_ARM_PASSED;
}

const char *engine_experiment_state_name(enum engine_experiment_state state)
{
	static const char *const names[] = {
		[ENGINE_EXPERIMENT_RUNNING] = "running",
		[ENGINE_EXPERIMENT_SCORING] = "scoring",
		[ENGINE_EXPERIMENT_PROMOTING] = "promoting",
		[ENGINE_EXPERIMENT_ENDED] = "ended",
	};

	return names[state];
}

/* --- planning ------------------------------------------------------------------------------ */

void engine_experiment_init(struct engine_experiment *x)
{
	*x = (struct engine_experiment){ .repeat = 1 };
	engine_run_limits_init(&x->limits);
}

struct engine_arm *engine_experiment_arm(const struct engine_experiment *x, const char *name)
{
	return VEC_FIND(it, x->arms, x->n_arms, strcmp(it->name, name) == 0);
}

int experiment_check_name(const struct engine_experiment *x, const char *name, size_t len,
			  struct err *err)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-";

	if (len == 0 || len > ENGINE_ARM_NAME_MAX || strspn(name, chars) < len || name[0] == '-')
		return err_set(err, -EINVAL,
			       "'%.*s' is no name of an arm: up to %d letters, digits, '_' and "
			       "'-', and then '=' and its command",
			       len > 60 ? 60 : (int)len, name, ENGINE_ARM_NAME_MAX);
	for (size_t i = 0; i < x->n_arms; i++)
		if (strlen(x->arms[i].name) == len && strncmp(x->arms[i].name, name, len) == 0)
			return err_set(err, -EINVAL, "there are two arms '%.*s'", (int)len, name);
	if (x->n_arms == ENGINE_ARMS_MAX)
		return err_set(err, -EINVAL, "there are more than %d arms", ENGINE_ARMS_MAX);
	return 0;
}

int experiment_add_arm(struct engine_experiment *x, const char *name, size_t len,
		       struct engine_arm **ret, struct err *err)
{
	int r = experiment_check_name(x, name, len, err);

	if (r < 0)
		return r;
	if (!VEC_ONE_MORE(x->arms, x->n_arms))
		return err_nomem(err);
	*ret = &x->arms[x->n_arms];
	**ret = (struct engine_arm){ .name = strndup(name, len) };
	x->n_arms++;
	return (*ret)->name ? 0 : err_nomem(err);
}

int engine_experiment_add(struct engine_experiment *x, const char *text, struct err *err)
{
	const size_t len = strcspn(text, "=");
	struct engine_arm *arm;
	int r = experiment_check_name(x, text, len, err);

	if (r < 0)
		return r;
	if (text[len] == '\0' || text[len + 1] == '\0')
		return err_set(err, -EINVAL, "arm '%.*s' has no command: NAME=COMMAND", (int)len,
			       text);
	r = experiment_add_arm(x, text, len, &arm, err);
	if (r < 0)
		return r;
	arm->command = strdup(text + len + 1);
	return arm->command ? 0 : err_nomem(err);
}

int inner_add(struct engine_arm *arm, struct err *err)
{
	if (arm->n_inner > 0)
		return err_set(err, -EINVAL, "arm '%s' has two experiments inside", arm->name);
	if (!VEC_ONE_MORE(arm->inner, arm->n_inner))
		return err_nomem(err);
	engine_experiment_init(&arm->inner[arm->n_inner++]);
	return 0;
}

int engine_experiment_add_inner(struct engine_experiment *x, const char *text, struct err *err)
{
	const size_t len = strcspn(text, "=");
	struct engine_arm *arm = NULL;
	int r = 0;

	if (text[len] == '\0' || text[len + 1] == '\0')
		return err_set(err, -EINVAL, "arm '%.*s' has no file: NAME=FILE",
			       len > 60 ? 60 : (int)len, text);
	for (size_t i = 0; i < x->n_arms; i++)
		if (strlen(x->arms[i].name) == len && strncmp(x->arms[i].name, text, len) == 0)
			arm = &x->arms[i];
	if (!arm)
		r = experiment_add_arm(x, text, len, &arm, err);
	if (r >= 0)
		r = inner_add(arm, err);
	if (r < 0)
		return r;
	arm->inner->file = strdup(text + len + 1);
	return arm->inner->file ? 0 : err_nomem(err);
}

int engine_experiment_score(struct engine_experiment *x, const char *text, struct err *err)
{
	static const enum engine_score measured[] = { ENGINE_SCORE_TIME, ENGINE_SCORE_CPU,
						      ENGINE_SCORE_MEM, ENGINE_SCORE_LINES,
						      ENGINE_SCORE_SIZE };
	const size_t len = strcspn(text, ":");
	const char *of = text[len] == ':' ? text + len + 1 : NULL;

	x->score = ENGINE_SCORE_COMMAND;
	for (size_t i = 0; i < ARRAY_LEN(measured); i++)
		if (strlen(engine_score_name(measured[i])) == len &&
		    strncmp(engine_score_name(measured[i]), text, len) == 0)
			x->score = measured[i];
	if (x->score == ENGINE_SCORE_COMMAND)
		of = text;
	if (x->score == ENGINE_SCORE_LINES && of)
		return err_set(err, -EINVAL, "the score 'lines' takes no command: '%s'", of);
	if ((x->score == ENGINE_SCORE_SIZE && !of) || (of && *of == '\0'))
		return err_set(err, -EINVAL, "the score '%s' needs %s", text,
			       x->score == ENGINE_SCORE_SIZE ? "a file: size:FILE" : "a command");
	free(x->score_of);
	x->score_of = of ? strdup(of) : NULL;
	return of && !x->score_of ? err_nomem(err) : 0;
}

/* --- rates --------------------------------------------------------------------------------- */

/* The bounds of Wilson's interval, which hold for few runs and for rates of 0 and 1, too. */
static void bound_rate(struct engine_rate *r)
{
	const double z = 1.959964, n = (double)r->runs, p = (double)r->passed / n;
	const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
	const double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));

	r->rate = p;
	r->low = r->passed == 0 ? 0 : middle - half;
	r->high = r->passed == r->runs ? 1 : middle + half;
}

bool engine_experiment_rate(const struct engine_experiment *x, size_t i, struct engine_rate *ret)
{
	const char *group = NULL;

	for (size_t k = 0; k < x->n_arms; k++) {
		if (!x->arms[k].group || (group && strcmp(group, x->arms[k].group) == 0))
			continue;
		group = x->arms[k].group;
		if (i-- > 0)
			continue;
		*ret = (struct engine_rate){ .arm = group };
		for (size_t m = k; m < x->n_arms && strcmp(x->arms[m].group, group) == 0; m++) {
			const enum engine_arm_state state = x->arms[m].state;

			ret->passed += state == ENGINE_ARM_PASSED;
			ret->runs += engine_arm_is_over(state) && state != ENGINE_ARM_STOPPED &&
				     state != ENGINE_ARM_LOST;
		}
		if (ret->runs > 0)
			bound_rate(ret);
		return true;
	}
	return false;
}
