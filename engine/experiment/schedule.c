/*
 * Which arms run when: as many at once as there is room for; each that ends makes room for the
 * next. All levels count together. Arms inside of an arm come before arms that have not begun, so
 * that begun work ends first.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/sys.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"

bool schedule_is_active(const struct engine_arm *arm)
{
	return (arm->state == ENGINE_ARM_RUNNING || arm->state == ENGINE_ARM_CHECKING) &&
	       !inner_is_under_way(arm);
}

/* At all levels. */
static size_t count_active(const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;
	size_t n = 0;

	while ((arm = engine_arms_next(&walk)))
		n += schedule_is_active(arm);
	return n;
}

static bool is_enough(const struct engine_experiment *x)
{
	size_t passed = 0;

	for (size_t i = 0; i < x->n_arms; i++)
		passed += x->arms[i].state == ENGINE_ARM_PASSED;
	return x->stop_after > 0 && passed >= x->stop_after;
}

int schedule_stop(struct work *w, const char *why, struct err *err)
{
	int r = 0;

	work_cancel_runs(w);
	for (size_t i = 0; i < w->x->n_arms && r >= 0; i++)
		if (!engine_arm_is_over(w->x->arms[i].state))
			r = arm_stop(w, &w->x->arms[i], why, err);
	return r;
}

/* Arms that wait for one that did not pass. */
static int stop_behind(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	int r = 0;

	for (size_t i = 0; i < x->n_arms && r >= 0; i++)
		if (x->arms[i].state == ENGINE_ARM_WAITING && after_failed(x, &x->arms[i]))
			r = arm_stop(w, &x->arms[i], "the arm that it goes on from did not pass",
				     err);
	return r;
}

/* --- starting ------------------------------------------------------------------------------ */

/* Commands that run elsewhere are many; checks run here. */
static int start_checks(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	size_t room = x->on.queue ? sys_processors() : SIZE_MAX;
	int r = 0;

	for (size_t i = 0; i < x->n_arms; i++)
		room -= room > 0 && x->arms[i].state == ENGINE_ARM_CHECKING && *x->arms[i].now;
	for (size_t i = 0; i < x->n_arms && room > 0 && r >= 0; i++)
		if (x->arms[i].state == ENGINE_ARM_CHECKING && *x->arms[i].now == '\0') {
			r = arm_begin_checks(w, &x->arms[i], err);
			room--;
		}
	return r;
}

/* Runs at once: of the whole, and of the experiment at hand. */
struct room {
	size_t *active; /* at all levels */
	size_t most;
	size_t here, most_here;
};

static bool has_room(const struct room *room)
{
	return *room->active < room->most && room->here < room->most_here;
}

static int start_waiting(struct work *w, size_t *active, struct err *err);

/* Begin it if it waits; if something is inside of it, and it is time, begin that. */
static int start_arm(struct work *w, struct engine_arm *arm, struct room *room, struct err *err)
{
	const size_t before = *room->active;
	int r = 0;

	if (arm->state == ENGINE_ARM_WAITING && !after_waits(w->x, arm) && has_room(room)) {
		r = arm_begin(w, arm, err);
		*room->active += r >= 0 && schedule_is_active(arm);
	}
	if (r >= 0 && inner_is_under_way(arm)) {
		struct work inside = inner_work(w, arm);

		r = start_waiting(&inside, room->active, err);
	}
	room->here += *room->active - before;
	return r;
}

static int start_waiting(struct work *w, size_t *active, struct err *err)
{
	struct engine_experiment *x = w->x;
	const uint64_t most = work_whole(w)->x->jobs;
	struct room room = {
		.active = active,
		.most = most,
		.here = count_active(x),
		.most_here = x->jobs > 0 ? x->jobs : most,
	};
	int r = is_enough(x) ? 0 : stop_behind(w, err);

	if (r < 0 || is_enough(x))
		return r;
	r = start_checks(w, err);
	/* First those that have begun. */
	for (int begun = 1; begun >= 0; begun--)
		for (size_t i = 0; i < x->n_arms && r >= 0; i++)
			if (inner_is_under_way(&x->arms[i]) == (begun == 1))
				r = start_arm(w, &x->arms[i], &room, err);
	return r;
}

/* --- waiting ------------------------------------------------------------------------------- */

/* An arm at any level that something runs of. */
struct runner {
	struct work work;
	struct engine_arm *arm;
};

static size_t list_active(struct work *w, struct runner *list, size_t n)
{
	for (size_t i = 0; i < w->x->n_arms; i++) {
		struct engine_arm *arm = &w->x->arms[i];

		if (schedule_is_active(arm) && *arm->now != '\0')
			list[n++] = (struct runner){ .work = *w, .arm = arm };
		if (inner_is_under_way(arm)) {
			struct work inside = inner_work(w, arm);

			n = list_active(&inside, list, n);
		}
	}
	return n;
}

/* Nothing runs that could be waited for. */
static int heed_stop(const struct work *w, struct err *err)
{
	struct pollfd fd = { .fd = w->stop_fd, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 ? err_set(err, -EINTR, "interrupted") : 0;
}

/* Wait until a run ends or it is time to tell; *ret are those that were waited for. */
static int wait_active(struct work *w, const struct runner *list, size_t n, struct engine_runs *ret,
		       struct err *err)
{
	AUTO_FREE const char **ids = calloc(n + 1, sizeof(*ids));
	const uint64_t left = work_left(w), tick = w->options->tick_ms;
	const struct engine_wait_options options = {
		.ids = ids,
		.n = n,
		.any = true,
		.timeout_ms = tick > 0 && tick < left ? tick : left,
		.stop_fd = w->stop_fd,
	};
	int r;

	if (!ids)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++)
		ids[i] = list[i].arm->now;
	r = engine_run_wait(w->engine, &options, ret, err);
	/* A record that was removed meanwhile is one of a run that is over. */
	return r < 0 && r != -EINTR ? err_wrap(err, r, "waiting for arms") : r;
}

static int stop_losers(struct work *w, struct err *err)
{
	int r = losers_stop(w, err);

	for (size_t i = 0; i < w->x->n_arms && r >= 0; i++)
		if (inner_is_under_way(&w->x->arms[i])) {
			struct work inside = inner_work(w, &w->x->arms[i]);

			r = stop_losers(&inside, err);
		}
	return r;
}

static int advance(struct work *w, size_t active, struct err *err)
{
	AUTO_FREE struct runner *list = calloc(active + 1, sizeof(*list));
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	size_t n;
	int r;

	if (!list)
		return err_nomem(err);
	n = list_active(w, list, 0);
	/* Checks that are to run again after a death have not begun yet. */
	r = n > 0 ? wait_active(w, list, n, &runs, err) : heed_stop(w, err);
	if (r < 0)
		return r;
	if (r > 0)
		work_tell(w, NULL);
	for (size_t i = 0; i < runs.n && r >= 0; i++)
		if (runs.list[i].state == ENGINE_RUN_RUNNING)
			r = arm_on_take(list[i].arm, &runs.list[i], err);
		else if (!is_enough(w->x) && !is_enough(list[i].work.x))
			r = arm_advance(&list[i].work, list[i].arm, &runs.list[i], err);
	return r < 0 ? r : stop_losers(w, err);
}

/* --- what is inside of arms ---------------------------------------------------------------- */

static bool is_over(const struct engine_experiment *x)
{
	return VEC_ALL(it, x->arms, x->n_arms, engine_arm_is_over(it->state));
}

/* Decide each experiment inside of an arm whose arms are over, the innermost first. */
static int settle(struct work *w, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < w->x->n_arms && r >= 0; i++) {
		struct engine_arm *arm = &w->x->arms[i];
		struct work inside;

		if (!inner_is_under_way(arm))
			continue;
		inside = inner_work(w, arm);
		r = settle(&inside, err);
		if (r < 0)
			return r;
		if (is_enough(inside.x))
			r = schedule_stop(&inside, "enough arms have passed", err);
		if (r < 0)
			return r;
		if (is_over(inside.x))
			r = inner_settle(w, arm, count_active(work_whole(w)->x) == 0, err);
	}
	return r;
}

/* --- all ----------------------------------------------------------------------------------- */

/* The first arms run. */
static int announce_start(struct work *w, struct err *err)
{
	int r;

	/* Now the store knows the project, too. */
	if (w->is_new)
		work_log_event(w, "experiment-started", NULL);
	w->is_new = false;
	if (!w->began)
		return 0;
	r = w->began(w, err);
	if (r >= 0)
		w->began = NULL;
	return r;
}

int schedule_arms(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	int r = 0;

	while (r >= 0) {
		size_t active;

		if (is_enough(x))
			return schedule_stop(w, "enough arms have passed", err);
		if (work_left(w) == 0)
			return schedule_stop(w, "the time of the whole is up", err);
		/* An arm goes on in the room of what was inside.  Callers that wait for the first run hear before that. */
		r = w->began ? 0 : settle(w, err);
		active = count_active(x);
		if (r >= 0)
			r = start_waiting(w, &active, err);
		if (r >= 0)
			r = announce_start(w, err);
		if (r == -ETIME)
			return schedule_stop(w, "the time of the whole is up", err);
		if (r < 0)
			return r;
		active = count_active(x);
		if (active > 0)
			r = advance(w, active, err);
		else if (is_over(x))
			return 0;
	}
	return r;
}
