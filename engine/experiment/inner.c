/*
 * An experiment inside of an arm.
 *
 * It is a part of the arm's state, so one process works on all levels and one file says how far
 * each is. Its arms are clones of the result of the arm's command. When they are over, the clone of
 * the arm is made again from the result of the best, and the arm continues with its own checks.
 * Until the state says that this is done, that clone can be made once more; so the winner's own
 * clone, which holds the result, is removed after that.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"

bool inner_is_under_way(const struct engine_arm *arm)
{
	return arm->n_inner > 0 && arm->state == ENGINE_ARM_RUNNING && arm->inner->created != 0;
}

/* --- from beginning to end ----------------------------------------------------------------- */

int inner_begin(struct work *w, struct engine_arm *arm, struct err *err)
{
	snprintf(arm->inner->base, sizeof(arm->inner->base), "%s", arm_left(w, arm));
	arm->inner->created = engine_now();
	return work_save(w, arm, err);
}

static bool has_passed(const struct engine_experiment *x)
{
	return VEC_HAS(it, x->arms, x->n_arms, it->state == ENGINE_ARM_PASSED);
}

/* 1: something died while scores were taken, and what is missing can be done again. */
static int decide(struct work *inside, struct err *err)
{
	struct engine_experiment *x = inside->x;
	int r = 0;

	if (x->state == ENGINE_EXPERIMENT_RUNNING) {
		x->state = ENGINE_EXPERIMENT_SCORING;
		r = work_save(inside, NULL, err);
	}
	if (r >= 0)
		r = score_take(inside, err);
	if (r == 0)
		r = verdict_find(x, err);
	if (r != 0)
		return r;
	x->state = ENGINE_EXPERIMENT_ENDED;
	x->ended = engine_now();
	return work_save(inside, NULL, err);
}

/* The arm leaves what the best one inside of it left. */
static int take_winner(struct work *w, struct engine_arm *arm, const char *left, struct err *err)
{
	int r = arm_remake_clone(w, arm, left, err);

	if (r >= 0 && strcmp(left, arm_start(w, arm)) != 0)
		r = arm_keep(w, arm, err);
	if (r >= 0)
		r = arm_begin_checks(w, arm, err);
	if (r >= 0 && arm->state > ENGINE_ARM_RUNNING && w->x->keep != ENGINE_KEEP_ALL)
		inner_release(w, arm);
	return r < 0 ? r : work_save(w, NULL, err);
}

int inner_settle(struct work *w, struct engine_arm *arm, bool idle, struct err *err)
{
	struct work inside = inner_work(w, arm);
	struct engine_experiment *x = arm->inner;
	const struct engine_arm *winner;
	int r = 0;

	if (x->state != ENGINE_EXPERIMENT_ENDED && score_is_run(x) && has_passed(x) && !idle)
		return 0;
	if (x->state != ENGINE_EXPERIMENT_ENDED)
		r = decide(&inside, err);
	if (r != 0)
		return r < 0 ? r : 0;
	winner = x->winner ? engine_experiment_arm(x, x->winner) : NULL;
	if (!winner) {
		r = text_set(&arm->why, err, "nothing inside of it wins: %s", x->verdict);
		return r < 0 ? r : arm_fail(w, arm, ENGINE_ARM_FAILED, err);
	}
	r = take_winner(w, arm, arm_left(&inside, winner), err);
	/* The next turn tries again; not for ever. */
	if (arm_is_death(r) && arm->attempts++ >= ENGINE_LEVELS_MAX)
		return arm_try_again(w, arm, err->msg, err);
	return arm_is_death(r) ? 0 : r;
}

/* --- other ends ---------------------------------------------------------------------------- */

int inner_stop(struct work *w, struct engine_arm *arm, const char *why, struct err *err)
{
	struct work inside;
	int r;

	if (!inner_is_under_way(arm))
		return 0;
	inside = inner_work(w, arm);
	r = schedule_stop(&inside, why, err);
	if (r >= 0 && arm->inner->state != ENGINE_EXPERIMENT_ENDED) {
		arm->inner->state = ENGINE_EXPERIMENT_ENDED;
		r = text_set(&arm->inner->verdict, err, "stopped: %s", why);
	}
	return r;
}

void inner_interrupt(struct work *w, struct engine_arm *arm)
{
	for (size_t i = 0; arm->n_inner > 0 && i < arm->inner->n_arms; i++) {
		struct work inside = inner_work(w, arm);

		arm_interrupt(&inside, &arm->inner->arms[i]);
	}
}

/* --- after a death of ours ----------------------------------------------------------------- */

int inner_recover(struct work *w, struct engine_arm *arm, struct err *err)
{
	struct work inside = inner_work(w, arm);
	const struct engine_arm *winner =
	    arm->inner->winner ? engine_experiment_arm(arm->inner, arm->inner->winner) : NULL;

	if (arm->inner->state == ENGINE_EXPERIMENT_ENDED)
		return winner && !engine_has_clone(w->engine, winner->clone);
	return engine_has_clone(w->engine, arm->clone) ? work_recover_arms(&inside, err) : 1;
}

static void forget_arm(struct engine_arm *arm)
{
	for (size_t i = 0; i < arm->n_checks; i++)
		free(arm->checks[i].command);
	arm->n_checks = arm->n_rounds = 0;
	arm->warmed = arm->scored = false;
	arm->state = ENGINE_ARM_WAITING;
	arm->attempts = 0;
	arm->result[0] = arm->now[0] = '\0';
	free(arm->why);
	arm->why = NULL;
	inner_forget(arm);
}

void inner_forget(struct engine_arm *arm)
{
	struct engine_experiment *x = arm->inner;

	if (arm->n_inner == 0 || x->created == 0)
		return;
	for (size_t i = 0; i < x->n_arms; i++)
		forget_arm(&x->arms[i]);
	x->state = ENGINE_EXPERIMENT_RUNNING;
	x->created = x->ended = 0;
	x->base[0] = '\0';
	verdict_forget(x);
}
