/*
 * Arms that continue other arms: clones of clones, within the limits of the whole experiment. Such
 * an arm waits until the other one has passed, starts from its result, and would promote the
 * changes of both.
 */
#include <errno.h>
#include <string.h>

#include "engine/experiment/experiment-i.h"

static struct engine_arm *find_arm(const struct engine_experiment *x, const struct engine_arm *arm)
{
	return arm->after ? engine_experiment_arm(x, arm->after) : NULL;
}

static int check_arm(const struct engine_experiment *x, const struct engine_arm *arm,
		     struct err *err)
{
	size_t n = 0;

	if (arm->from)
		return err_set(err, -EINVAL,
			       "arm '%s' goes on from arm '%s' and has another state to start from",
			       arm->name, arm->after);
	for (const struct engine_arm *at = arm; at->after; n++) {
		const struct engine_arm *next = find_arm(x, at);

		if (!next)
			return err_set(err, -EINVAL,
				       "arm '%s' goes on from '%.60s', which is no arm", at->name,
				       at->after);
		if (n == x->n_arms)
			return err_set(err, -EINVAL,
				       "arm '%s' goes on from arms that go on from it", arm->name);
		at = next;
	}
	return 0;
}

int after_check(const struct engine_experiment *x, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++) {
		if (!x->arms[i].after)
			continue;
		/* A repetition that has passed gives its clone back at once. */
		if (x->repeat > 1)
			return err_set(err, -EINVAL,
				       "arm '%s' goes on from another and cannot be repeated",
				       x->arms[i].name);
		r = check_arm(x, &x->arms[i], err);
	}
	return r;
}

bool after_waits(const struct engine_experiment *x, const struct engine_arm *arm)
{
	const struct engine_arm *other = find_arm(x, arm);

	return other && other->state != ENGINE_ARM_PASSED;
}

bool after_failed(const struct engine_experiment *x, const struct engine_arm *arm)
{
	const struct engine_arm *other = find_arm(x, arm);

	return other && engine_arm_is_over(other->state) && other->state != ENGINE_ARM_PASSED;
}

int after_start(struct work *w, struct engine_arm *arm, struct err *err)
{
	const struct engine_arm *other = find_arm(w->x, arm);

	if (!other)
		return 0;
	free(arm->from);
	arm->from = NULL;
	if (*other->result == '\0' && !other->from)
		return 0; /* it left the state of the experiment */
	arm->from = strdup(arm_left(w, other));
	return arm->from ? 0 : err_nomem(err);
}

const struct engine_arm *after_first(const struct engine_experiment *x,
				     const struct engine_arm *arm)
{
	for (const struct engine_arm *next = find_arm(x, arm); next; next = find_arm(x, arm))
		arm = next;
	return arm;
}
