#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/await.h"
#include "base/cleanup.h"
#include "engine/find/engine-i.h"
#include "engine/find/run-record.h"

struct waiting {
	struct engine *engine;
	const struct engine_wait_options *options;
	int at;
	int *numbers; /* owned; the watch on each run's record */
	struct engine_runs runs;
};

static void waiting_done(struct waiting *w)
{
	cleanup_close(&w->at);
	free(w->numbers);
	engine_runs_done(&w->runs);
}

static bool is_over(const struct engine_run *run)
{
	return run->state != ENGINE_RUN_RUNNING;
}

static bool is_enough(const struct waiting *w)
{
	size_t over = 0;

	for (size_t i = 0; i < w->runs.n; i++)
		over += is_over(&w->runs.list[i]);
	return w->options->any ? over > 0 : over == w->runs.n;
}

/* Read the record again.  If it was removed meanwhile, the run is over. */
static int look(struct waiting *w, size_t i, struct err *err)
{
	struct engine_run *run = &w->runs.list[i], now = { 0 };
	int r;

	if (is_over(run))
		return 0;
	r = run_record_read(w->engine->store_path, run->id, &now, err);
	if (r < 0)
		return r;
	engine_run_done(run);
	*run = now;
	return 0;
}

static int begin(struct waiting *w, struct err *err)
{
	const struct engine_wait_options *o = w->options;

	w->numbers = calloc(o->n + 1, sizeof(*w->numbers));
	w->runs.list = calloc(o->n + 1, sizeof(*w->runs.list));
	w->at = await_open();
	if (!w->numbers || !w->runs.list)
		return err_nomem(err);
	if (w->at < 0)
		return err_set(err, w->at, "waiting for runs");
	for (size_t i = 0; i < o->n; i++) {
		struct engine_run *run = &w->runs.list[i];
		AUTO_FREE char *path = NULL;
		int r = engine_run_find(w->engine, o->ids[i], run, err);

		if (r < 0)
			return r;
		w->runs.n++;
		path = run_record_path(w->engine->store_path, run->id, ".json");
		w->numbers[i] = path ? await_file(w->at, path) : -ENOMEM;
		if (w->numbers[i] < 0)
			return err_set(err, w->numbers[i], "waiting for run %s", run->id);
		/* It may have ended before the watch was set. */
		r = look(w, i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void hear(int number, bool closed, void *ctx)
{
	struct waiting *w = ctx;

	for (size_t i = 0; closed && i < w->runs.n; i++)
		if (w->numbers[i] == number && !is_over(&w->runs.list[i]))
			run_record_settle(w->engine->store_path, w->runs.list[i].id);
}

/* Milliseconds left, for poll(2); 0: none. */
static int left(uint64_t until)
{
	const uint64_t now = engine_clock_ms();

	if (until == ENGINE_UNSAID)
		return -1;
	return until <= now ? 0 : until - now > INT_MAX ? INT_MAX : (int)(until - now);
}

int engine_run_wait(struct engine *e, const struct engine_wait_options *o, struct engine_runs *ret,
		    struct err *err)
{
	CLEANUP(waiting_done) struct waiting w = { .engine = e, .options = o, .at = -1 };
	const uint64_t now = engine_clock_ms();
	const uint64_t until =
	    o->timeout_ms < ENGINE_UNSAID - now ? now + o->timeout_ms : ENGINE_UNSAID;
	int r = begin(&w, err);

	while (r >= 0 && !is_enough(&w) && left(until) != 0) {
		r = await_next(w.at, o->stop_fd, left(until), hear, &w);
		if (r == -EINTR)
			return err_set(err, r, "interrupted");
		for (size_t i = 0; r >= 0 && i < w.runs.n; i++)
			r = look(&w, i, err);
	}
	if (r < 0)
		return r;
	r = is_enough(&w) ? 0 : 1;
	*ret = TAKE_STRUCT(w.runs);
	return r;
}
