#include "cli/show/queues.h"

#include <string.h>

#include "base/attr.h"
#include "base/log.h"
#include "engine/api/watch.h"

/* --- watch ------------------------------------------------------------------------------ */

int queues_add_watch(struct families *f, struct err *err)
{
	static const char name[] = "watch_actions";
	CLEANUP(engine_firings_done) struct engine_firings all = { 0 };
	uint64_t counts[ENGINE_FIRING_DONE + 1] = { 0 };
	int r = engine_watch_log(f->inv->engine, &all, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++)
		counts[all.list[i].state]++;
	families_begin(f, name, "gauge", "Actions of watch rules that are recorded, by state.");
	for (enum engine_firing_state s = 0; s <= ENGINE_FIRING_DONE; s++)
		families_add(
		    f, name,
		    (struct family_sample){ "state", engine_firing_state_name(s), counts[s] });
	return 0;
}

/* --- workers ---------------------------------------------------------------------------- */

static uint64_t running(const struct engine_worker_state *w)
{
	return w->n_running;
}

static uint64_t done(const struct engine_worker_state *w)
{
	return w->done;
}

static uint64_t failed(const struct engine_worker_state *w)
{
	return w->failed;
}

static uint64_t refused(const struct engine_worker_state *w)
{
	return w->refused;
}

static uint64_t jobs(const struct engine_worker_state *w)
{
	return w->jobs;
}

static uint64_t busy_seconds(const struct engine_worker_state *w)
{
	return w->busy_ms / 1000;
}

static uint64_t fetched(const struct engine_worker_state *w)
{
	return w->fetched;
}

static uint64_t pushed(const struct engine_worker_state *w)
{
	return w->pushed;
}

/* A sample for each name: two workers that call themselves the same count as one. */
static void add_by_worker(struct families *f, const struct engine_worker_status *s,
			  const char *name, uint64_t (*of)(const struct engine_worker_state *))
{
	for (size_t i = 0; i < s->n_workers;) {
		struct family_sample sample = { .key = "worker", .label = s->workers[i].name };

		for (; i < s->n_workers && strcmp(s->workers[i].name, sample.label) == 0; i++)
			sample.value += of(&s->workers[i]);
		families_add(f, name, sample);
	}
}

static void add_each(struct families *f, const struct engine_worker_status *s)
{
	static const struct {
		const char *name, *type, *help;
		uint64_t (*of)(const struct engine_worker_state *);
	} list[] = {
		{ "worker_running", "gauge", "Tickets that a worker runs now.", running },
		{ "worker_done_total", "counter", "Tickets that a worker ended since it began.",
		  done },
		{ "worker_failed_total", "counter", "Tickets that a worker could not run.",
		  failed },
		{ "worker_refused_total", "counter", "Tickets that a worker would not run.",
		  refused },
		{ "worker_jobs", "gauge", "Tickets that a worker can run at once.", jobs },
		{ "worker_busy_seconds_total", "counter",
		  "Time with a ticket, of all jobs of a worker together.", busy_seconds },
		{ "worker_fetched_bytes_total", "counter",
		  "Packed bytes that a worker fetched for tickets that are over.", fetched },
		{ "worker_pushed_bytes_total", "counter",
		  "Packed bytes that a worker pushed for tickets that are over.", pushed },
	};

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		families_begin(f, list[i].name, list[i].type, list[i].help);
		add_by_worker(f, s, list[i].name, list[i].of);
	}
}

static void add_queue(struct families *f, const struct engine_worker_status *s, bool up)
{
	const struct family_of_one list[] = {
		{ "queue_up", "gauge", "Whether the queue of tickets answers.", up },
		{ "queue_waiting", "gauge", "Tickets that no worker has taken.", s->waiting },
		{ "queue_taken", "gauge", "Tickets that workers have taken and not ended.",
		  s->taken },
		{ "queue_redelivered", "gauge", "Of those, what was taken more than once.",
		  s->redelivered },
		{ "queue_results", "gauge", "Results that are kept.", s->results },
		{ "queue_workers", "gauge", "Workers that answered.", s->n_workers },
	};

	families_add_singles(f, list, up ? ARRAY_LEN(list) : 1);
}

void queues_add_workers(struct families *f, const struct engine_worker_status_options *of)
{
	CLEANUP(engine_worker_status_done) struct engine_worker_status s = { 0 };
	struct err err = { 0 };
	const bool up = engine_worker_status(f->inv->engine, of, &s, &err) >= 0;

	if (!up)
		log_warn("%s, continuing without its numbers", err.msg);
	add_queue(f, &s, up);
	if (s.n_workers > 0)
		add_each(f, &s);
}
