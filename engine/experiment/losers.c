/*
 * Arms that cannot win any more, for experiments that asked not to wait for them.
 *
 * Lines are counted when the command of an arm has ended and never change, so an arm with more of
 * them than one that passed is beaten for certain. A measured score has no such bound: an arm is
 * beaten when the worst round of another is better than its own best, after LEAST rounds of both.
 */
#include <stdio.h>

#include "base/vec.h"
#include "engine/experiment/experiment-i.h"

#define LEAST 3

static bool is_better(const struct engine_experiment *x, double a, double b)
{
	return x->higher ? a > b : a < b;
}

static double lines_of(const struct engine_arm *arm)
{
	return (double)(arm->lines_added + arm->lines_removed);
}

/* The best of its rounds, or the worst. */
static double extreme(const struct engine_experiment *x, const struct engine_arm *arm, bool best)
{
	double at = arm->rounds[0].value;

	for (size_t i = 1; i < arm->n_rounds; i++)
		if (is_better(x, arm->rounds[i].value, at) == best)
			at = arm->rounds[i].value;
	return at;
}

static bool beats(const struct engine_experiment *x, const struct engine_arm *a,
		  const struct engine_arm *b)
{
	if (a == b || a->state != ENGINE_ARM_PASSED)
		return false;
	if (x->score == ENGINE_SCORE_LINES)
		return is_better(x, lines_of(a), lines_of(b));
	return a->n_rounds >= LEAST && b->n_rounds >= LEAST &&
	       is_better(x, extreme(x, a, false), extreme(x, b, true));
}

const struct engine_arm *losers_beaten_by(const struct engine_experiment *x,
					  const struct engine_arm *arm)
{
	return x->stop_losers ? VEC_FIND(it, x->arms, x->n_arms, beats(x, it, arm)) : NULL;
}

static int stop(struct work *w, struct engine_arm *arm, const char *by, struct err *err)
{
	char why[80];

	snprintf(why, sizeof(why), "it cannot win any more: '%s' changed %s lines", by,
		 w->x->higher ? "more" : "fewer");
	return arm_stop(w, arm, why, err);
}

int losers_stop(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	int r = 0;

	for (size_t i = 0; x->score == ENGINE_SCORE_LINES && i < x->n_arms && r >= 0; i++) {
		const struct engine_arm *by = x->arms[i].state == ENGINE_ARM_CHECKING
						  ? losers_beaten_by(x, &x->arms[i])
						  : NULL;

		if (by)
			r = stop(w, &x->arms[i], by->name, err);
	}
	return r;
}
