/*
 * What each part of an experiment reports and saves about the whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/experiment/experiment-i.h"
#include "engine/find/event-i.h"

#define NS_PER_MS 1000000

/* --- telling ------------------------------------------------------------------------------- */

struct work *work_whole(struct work *w)
{
	return w->whole ? w->whole : w;
}

/* The names from the outermost arm to this one: "strip/fast". */
static void path_of(const struct work *w, const struct engine_arm *arm,
		    char text[ENGINE_ARM_PATH_SIZE])
{
	size_t len = 0;

	if (*w->path != '\0')
		len = (size_t)snprintf(text, ENGINE_ARM_PATH_SIZE, "%s/", w->path);
	if (len < ENGINE_ARM_PATH_SIZE)
		snprintf(text + len, ENGINE_ARM_PATH_SIZE - len, "%s", arm->name);
}

struct work inner_work(struct work *w, struct engine_arm *arm)
{
	struct work inside = {
		.engine = w->engine,
		.x = arm->inner,
		.options = w->options,
		.whole = work_whole(w),
		.lock = DOCKET_LOCK_INIT,
		.stop_fd = work_whole(w)->stop_fd,
	};

	path_of(w, arm, inside.path);
	return inside;
}

void work_tell(struct work *w, const struct engine_arm *arm)
{
	if (w->options->tell)
		w->options->tell(work_whole(w)->x, arm, w->options->ctx);
}

void work_log_event(struct work *w, const char *kind, const struct engine_arm *arm)
{
	const struct engine_experiment *x = work_whole(w)->x;
	char path[ENGINE_ARM_PATH_SIZE];
	struct store *store = NULL;
	struct event ev;

	if (engine_store(w->engine, STORE_READ, &store, NULL) < 0)
		store = NULL;
	event_begin(&ev, kind,
		    (struct event_subject){ .project = x->project,
					    .store = store,
					    .clone = arm ? arm->clone : NULL,
					    .run = arm && *arm->run ? arm->run : NULL });
	json_set_name(ev.data, "experiment", x->name);
	if (arm) {
		path_of(w, arm, path);
		json_set_name(ev.data, "arm", path);
		json_set_text(ev.data, "state", engine_arm_state_name(arm->state));
		json_set_text(ev.data, "why", arm->why);
		if (*arm->promotion != '\0')
			json_set_text(ev.data, "receipt", arm->promotion);
	} else {
		json_set_uint(ev.data, "arms", x->n_arms);
		json_set_name(ev.data, "winner", x->winner);
		json_set_uint(ev.data, "promoted", x->n_promoted);
		if (x->waits_for)
			json_set_name(ev.data, "waits_for", x->waits_for);
	}
	event_end(&ev, w->engine->store_path);
}

/* What is saved says how much time was used, so that a death does not give it back. */
static void count_time(struct work *w)
{
	const uint64_t now = engine_clock_ms();

	w->x->spent_ms += now - w->started;
	w->started = now;
}

int work_save(struct work *w, const struct engine_arm *arm, struct err *err)
{
	struct work *whole = work_whole(w);
	int r;

	count_time(whole);
	whole->x->saved = engine_now();
	whole->x->pid = getpid();
	r = experiment_save(&whole->lock, whole->x, err);
	if (r < 0)
		return r;
	if (arm && engine_arm_is_over(arm->state) && w->x->state == ENGINE_EXPERIMENT_RUNNING)
		work_log_event(w, "experiment-arm", arm);
	if (arm)
		work_tell(w, arm);
	return 0;
}

/* When the last run of that clone ended that began after `since`, or the first one; one that has not: now. */
static int64_t find_end(struct work *w, const char *clone, int64_t since, bool first)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const struct engine_runs_options options = { .clone = clone };
	int64_t begun = INT64_MAX, found = 0;

	if (!clone || engine_runs(w->engine, &options, &runs, NULL) < 0)
		return 0;
	for (size_t i = 0; i < runs.n; i++) {
		const struct engine_run *run = &runs.list[i];
		const int64_t end = run->state == ENGINE_RUN_RUNNING ? engine_now() : run->ended;

		if (run->started < since || (first && run->started >= begun))
			continue;
		begun = run->started;
		found = first || end > found ? end : found;
	}
	return found;
}

void work_count_unwatched(struct work *w)
{
	struct engine_arms_walk walk = engine_arms_walk(w->x);
	const struct engine_arm *arm;
	int64_t last = 0;

	if (w->x->saved == 0 || w->x->all_time_ms == 0)
		return;
	while ((arm = engine_arms_next(&walk))) {
		/* What others ran in its clone later, or after it was over, is not the experiment's. */
		const bool runs = arm->has_clone && arm->state == ENGINE_ARM_RUNNING;
		const int64_t command = runs ? find_end(w, arm->clone, arm->begun, true) : 0;
		const int64_t check = find_end(w, arm->judge, w->x->created, false);

		last = command > last ? command : last;
		last = check > last ? check : last;
	}
	if (last > w->x->saved)
		w->x->spent_ms += (uint64_t)(last - w->x->saved) / NS_PER_MS;
}

uint64_t work_left(struct work *w)
{
	const struct work *whole = work_whole(w);
	const uint64_t used = whole->x->spent_ms + (engine_clock_ms() - whole->started);

	if (whole->x->all_time_ms == 0)
		return ENGINE_UNSAID;
	return used < whole->x->all_time_ms ? whole->x->all_time_ms - used : 0;
}

/* --- its runs ------------------------------------------------------------------------------ */

void work_cancel_runs(struct work *w)
{
	struct engine_arms_walk walk = engine_arms_walk(w->x);
	AUTO_FREE const char **ids = NULL;
	const struct engine_arm *arm;
	size_t n = 0;

	while ((arm = engine_arms_next(&walk)))
		n += *arm->now != '\0';
	ids = n > 0 ? calloc(n, sizeof(*ids)) : NULL;
	if (!ids)
		return;
	n = 0;
	walk = engine_arms_walk(w->x);
	while ((arm = engine_arms_next(&walk)))
		if (*arm->now != '\0')
			ids[n++] = arm->now;
	engine_run_cancel_all(w->engine, ids, n);
}
