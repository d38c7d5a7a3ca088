/*
 * The sequence of an experiment: run the arms (schedule.c); when all are over, take scores; then
 * decide, promote, and remove everything that nobody asked to keep.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "base/vec.h"
#include "engine/api/service.h"
#include "engine/experiment/experiment-i.h"

/* --- the end ------------------------------------------------------------------------------- */

static bool is_in_tie(const struct engine_experiment *x, const struct engine_arm *arm)
{
	return VEC_HAS(it, x->tie, x->n_tie, strcmp(*it, arm->name) == 0);
}

static bool is_kept(const struct engine_experiment *x, const struct engine_arm *arm)
{
	const bool passed = arm->state == ENGINE_ARM_PASSED;

	switch (x->keep) {
	case ENGINE_KEEP_ALL:
		return true;
	case ENGINE_KEEP_NONE:
		return false;
	case ENGINE_KEEP_PASSED:
		return passed;
	case ENGINE_KEEP_BEST:
		break;
	}
	if (!passed || *arm->promotion != '\0')
		return false;
	return x->promote == ENGINE_PROMOTE_COMPATIBLE || is_in_tie(x, arm) ||
	       (x->winner && strcmp(x->winner, arm->name) == 0);
}

static int finish(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	const bool first = x->ended == 0;
	int r;

	for (size_t i = 0; i < x->n_arms; i++)
		arm_release(w, &x->arms[i], is_kept(x, &x->arms[i]));
	x->state = ENGINE_EXPERIMENT_ENDED;
	if (first)
		x->ended = engine_now();
	r = work_save(w, NULL, err);
	if (r < 0)
		return r;
	if (first)
		work_log_event(w, "experiment-ended", NULL);
	work_tell(w, NULL);
	return 0;
}

/* Cancel what runs of it; arms that were under way begin again when it is resumed. */
static void interrupt_arms(struct work *w)
{
	work_cancel_runs(w);
	for (size_t i = 0; i < w->x->n_arms; i++) {
		struct engine_arm *arm = &w->x->arms[i];

		if (inner_is_under_way(arm)) {
			struct work inside = inner_work(w, arm);

			interrupt_arms(&inside);
			continue;
		}
		if (schedule_is_active(arm) || *arm->now != '\0')
			arm_interrupt(w, arm);
		if (!schedule_is_active(arm))
			continue;
		arm_release(w, arm, false);
		inner_forget(arm);
		arm->state = ENGINE_ARM_WAITING;
		arm->attempts = 0;
	}
}

static void interrupt(struct work *w)
{
	struct err err = { 0 };

	interrupt_arms(w);
	if (work_save(w, NULL, &err) < 0)
		log_warn("%s, continuing", err.msg);
}

/* A user who looks at it later sees why nobody works on it. */
static void note_problem(struct work *w, int r, const struct err *err)
{
	if (r == -EINTR || !err)
		return;
	free(w->x->problem);
	w->x->problem = strdup(err->msg);
}

/* 1: something died while scores were taken, and what is missing can be done again. */
static int run_once(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	int r = 0;

	if (x->state == ENGINE_EXPERIMENT_RUNNING)
		r = schedule_arms(w, err);
	if (r >= 0 && x->state == ENGINE_EXPERIMENT_RUNNING) {
		x->state = ENGINE_EXPERIMENT_SCORING;
		work_tell(w, NULL);
		r = work_save(w, NULL, err);
	}
	if (r >= 0 && x->state == ENGINE_EXPERIMENT_SCORING)
		r = score_take(w, err);
	/* Scores that could not all be taken decide nothing. */
	if (r == -ETIME)
		r = schedule_stop(w, "the time of the whole is up", err);
	return r;
}

static int run_all(struct work *w, struct err *err)
{
	int r;

	do
		r = run_once(w, err);
	while (r > 0);
	return r;
}

/* `first` may be NULL. */
static int go(struct work *w, work_fn first, struct err *err)
{
	struct signals signals = SIGNALS_INIT;
	/* A reader who has gone, as in `| head`, leaves no arm running either. */
	int sig, r = signals_begin(&signals, SIGPIPE, err);

	if (r < 0)
		return r;
	w->stop_fd = signals.pipe[0];
	r = first ? first(w, err) : 0;
	if (r >= 0)
		r = run_all(w, err);
	if (r < 0) {
		note_problem(w, r, err);
		interrupt(w);
	}
	/* A signal that came when no run was waited for counts, too. */
	sig = signals_end(&signals);
	if (sig > 0 && w->options->ret_signal)
		*w->options->ret_signal = sig;
	if (sig > 0 && r >= 0) {
		r = err_set(err, -EINTR, "interrupted");
		interrupt(w);
	}
	if (r >= 0 && w->x->state < ENGINE_EXPERIMENT_PROMOTING)
		r = verdict_find(w->x, err);
	/* Of one that had ended, only a promotion was under way, and nothing is left to choose. */
	if (r >= 0 && w->x->ended == 0)
		r = choose_arms(w, err);
	return r < 0 ? r : finish(w, err);
}

static struct work work_of(struct engine *e, struct engine_experiment *x,
			   const struct engine_experiment_options *options,
			   struct engine_promotion *promotion)
{
	return (struct work){
		.engine = e,
		.x = x,
		.options = options,
		.lock = DOCKET_LOCK_INIT,
		.promotion = promotion,
		.stop_fd = -1,
		.started = engine_clock_ms(),
	};
}

static void work_done(struct work *w)
{
	docket_lock_done(&w->lock);
}

/* --- beginning ----------------------------------------------------------------------------- */

static bool has_run(const struct engine_experiment *x)
{
	return VEC_HAS(it, x->arms, x->n_arms,
		       it->has_clone || *it->run != '\0' || it->attempts > 1);
}

/* Remove its clones, then the state; it stays as long as one of them does, which only the state names. */
static int remove_whole(struct work *w, struct err *err)
{
	work_cancel_runs(w);
	w->stuck = (struct err){ 0 };
	for (size_t i = 0; i < w->x->n_arms; i++) {
		arm_interrupt(w, &w->x->arms[i]);
		arm_release(w, &w->x->arms[i], false);
	}
	if (w->stuck.code < 0) {
		IGNORE_RESULT(work_save(w, NULL, NULL), "the failure counts");
		return err_set(err, w->stuck.code, "experiment '%.60s' stays: %.180s", w->x->name,
			       w->stuck.msg);
	}
	return experiment_forget(w->engine, w->x->name, &w->lock, err);
}

/* All of one that has begun. */
static int work_new(struct work *w, struct err *err)
{
	int r = go(w, NULL, err);

	/* One that failed before it ran anything would fail again; of one whose asker has gone nobody knows. */
	if (r < 0 && ((r != -EINTR && !has_run(w->x)) || w->began))
		IGNORE_RESULT(remove_whole(w, NULL), "the failure counts");
	return r;
}

/* Do it here, or have a process of its own do it. */
static int work_on(struct work *w, work_fn rest, struct err *err)
{
	AUTO_FREE char *name = NULL;
	int r;

	if (!w->options->detach)
		return rest(w, err);
	name = strdup(w->x->name);
	if (!name)
		return err_nomem(err);
	r = work_detach(w, rest, err);
	if (r < 0)
		return r;
	engine_experiment_done(w->x);
	return engine_experiment_load(w->engine, name, w->x, err);
}

int engine_experiment(struct engine *e, struct engine_experiment *x,
		      const struct engine_experiment_options *options,
		      struct engine_promotion *promotion, struct err *err)
{
	CLEANUP(work_done) struct work w = work_of(e, x, options, promotion);
	int r = plan_complete(e, x, err);

	if (r < 0)
		return r;
	r = experiment_create(e, x->name, &w.lock, err);
	if (r < 0)
		return r;
	x->created = engine_now();
	x->alive = true;
	w.is_new = true;
	r = work_save(&w, NULL, err);
	if (r < 0)
		return r;
	return work_on(&w, work_new, err);
}

/* --- going on ------------------------------------------------------------------------------ */

/* A measurement was under way, or what it is taken on has gone. */
static bool is_half_judged(struct work *w, const struct engine_arm *arm)
{
	return *arm->now != '\0' || (arm->judge && (arm_lost_daemon(w, arm) ||
						    !engine_has_clone(w->engine, arm->judge)));
}

int work_recover_arms(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++) {
		struct engine_arm *arm = &x->arms[i];

		/* Power loss may have taken a clone of which nothing was decided. */
		if (arm->state == ENGINE_ARM_PASSED && arm->has_clone && !x->promoting &&
		    x->n_promoted == 0 && x->state < ENGINE_EXPERIMENT_PROMOTING &&
		    !engine_has_clone(w->engine, arm->clone)) {
			arm->state = ENGINE_ARM_RUNNING;
			x->state = ENGINE_EXPERIMENT_RUNNING;
		}
		if (arm->state == ENGINE_ARM_PASSED && x->state < ENGINE_EXPERIMENT_PROMOTING &&
		    is_half_judged(w, arm)) {
			arm->attempts = 0;
			r = arm_check_again(w, arm, err);
		}
		if (r >= 0)
			r = arm_recover(w, arm, err);
	}
	return r;
}

static int recover(struct work *w, struct err *err)
{
	int r = choose_recover(w, err);

	if (r >= 0)
		r = work_recover_arms(w, err);
	return r < 0 ? r : work_save(w, NULL, err);
}

static int take(struct work *w, const char *name, struct err *err)
{
	int r = experiment_take(w->engine, name, &w->lock, err);

	if (r < 0)
		return r;
	r = experiment_read_taken(w->engine, &w->lock, name, w->x, err);
	w->x->alive = r >= 0;
	return r;
}

static int work_rest(struct work *w, struct err *err)
{
	struct engine_service s;
	bool started;
	int r = engine_start(w->engine, &s, &started, err);

	work_count_unwatched(w);
	if (r >= 0)
		return go(w, recover, err);
	/* As beside a cowfsd of another version: nothing was begun here, so nothing ends here. */
	note_problem(w, r, err);
	IGNORE_RESULT(work_save(w, NULL, NULL), "the failure counts");
	return r;
}

int engine_experiment_resume(struct engine *e, const char *name,
			     const struct engine_experiment_options *options,
			     struct engine_experiment *x, struct engine_promotion *promotion,
			     struct err *err)
{
	CLEANUP(work_done) struct work w = work_of(e, x, options, promotion);
	int r = take(&w, name, err);

	if (r < 0 || x->state == ENGINE_EXPERIMENT_ENDED)
		return r;
	free(x->problem);
	free(x->waits_for);
	x->problem = x->waits_for = NULL;
	return work_on(&w, work_rest, err);
}

int work_interrupt(struct engine *e, const char *name, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	const struct engine_experiment_options options = { 0 };
	CLEANUP(work_done) struct work w = { .engine = e,
					     .x = &x,
					     .options = &options,
					     .lock = DOCKET_LOCK_INIT,
					     .stop_fd = -1,
					     .started = engine_clock_ms() };
	int r = take(&w, name, err);

	if (r >= 0 && x.state != ENGINE_EXPERIMENT_ENDED)
		interrupt(&w);
	return r;
}

int engine_experiment_promote(struct engine *e, const char *name, const char *arm_name,
			      const struct engine_experiment_options *options,
			      struct engine_experiment *x, struct engine_promotion *promotion,
			      struct err *err)
{
	CLEANUP(work_done) struct work w = work_of(e, x, options, promotion);
	struct engine_arm *arm;
	int r = take(&w, name, err);

	if (r < 0)
		return r;
	arm = engine_experiment_arm(x, arm_name);
	if (!arm)
		return err_set(err, -ENOENT, "experiment '%s' has no arm '%.60s'", name, arm_name);
	if (x->state != ENGINE_EXPERIMENT_ENDED && x->state != ENGINE_EXPERIMENT_PROMOTING) {
		x->alive = false;
		return err_set(err, -EBUSY, "experiment '%s' was interrupted and is not over",
			       name);
	}
	r = choose_recover(&w, err);
	if (r < 0)
		return r;
	if (*arm->promotion != '\0')
		return err_set(err, -ECANCELED, "arm '%s' was promoted already, as %s", arm_name,
			       arm->promotion);
	if (arm->state != ENGINE_ARM_PASSED)
		return err_set(err, -ECANCELED, "arm '%s' did not pass: %s", arm_name,
			       arm->why ? arm->why : engine_arm_state_name(arm->state));
	if (!arm->has_clone)
		return err_set(err, -ENOENT, "the clone of arm '%s' was removed: --keep keeps it",
			       arm_name);
	r = choose_arm(&w, arm, err);
	return r < 0 ? r : finish(&w, err);
}

int engine_experiment_remove(struct engine *e, const char *name, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	const struct engine_experiment_options options = { 0 };
	CLEANUP(work_done) struct work w = work_of(e, &x, &options, NULL);
	int r = take(&w, name, err);

	if (r == -EBADMSG)
		return experiment_forget(e, name, &w.lock, err);
	return r < 0 ? r : remove_whole(&w, err);
}
