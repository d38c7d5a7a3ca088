/*
 * The verb: read the options of a worker, make its slots, connect, and work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"
#include "engine/api/profile.h"
#include "engine/worker/worker-i.h"

static void worker_done(struct worker *w)
{
	/* First, so that nobody else believes that a ticket is being done. */
	slots_end(w->slots, w->n_slots);
	queue_close(w->queue);
	(void)signals_end(&w->signals);
	target_done(&w->target);
	strlist_done(&w->labels);
	free(w->name);
	free(w->dir);
}

static int sort_labels(const struct engine_list *given, struct strlist *ret, struct err *err)
{
	for (size_t i = 0; i < given->n; i++) {
		if (!queue_word_valid(given->items[i]) || strcmp(given->items[i], "any") == 0)
			return err_set(err, -EINVAL,
				       "'%.80s' cannot be a label: small letters, digits and '-', "
				       "at most %d",
				       given->items[i], QUEUE_NAME_MAX);
		if (!strlist_has(ret, given->items[i]) && strlist_add(ret, given->items[i]) < 0)
			return err_nomem(err);
	}
	if (ret->n > QUEUE_LABELS_MAX)
		return err_set(err, -EINVAL, "a worker has at most %d labels", QUEUE_LABELS_MAX);
	strlist_sort(ret);
	return 0;
}

/* The machine's, unless less was said.  More is fine: memory can be swapped, and processors shared. */
static struct queue_need offered(const struct engine_worker_options *o)
{
	const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	const uint64_t mem = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;

	return (struct queue_need){
		.mem = o->mem > 0 ? o->mem : mem,
		.cpus_milli = o->cpus_milli > 0 ? o->cpus_milli : UINT64_C(1000) * sys_processors(),
	};
}

/* One that asks for more than `most` would be refused: others may have a profile for it. */
static uint64_t narrowed(uint64_t total, uint64_t most)
{
	return most > 0 && most < total ? most : total;
}

/* They must be there, and a ticket gets no more than the largest of them. */
static int check_profiles(struct worker *w, struct err *err)
{
	struct queue_need most = { 0 };
	bool mem = true, cpus = true; /* limited */
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->rules.profiles.n; i++) {
		CLEANUP(engine_profile_done) struct engine_profile p = { 0 };

		r = engine_profile(w->e, w->rules.profiles.items[i], &p, err);
		mem &= p.mem > 0;
		cpus &= p.cpus_milli > 0;
		most.mem = p.mem > most.mem ? p.mem : most.mem;
		most.cpus_milli = p.cpus_milli > most.cpus_milli ? p.cpus_milli : most.cpus_milli;
	}
	w->total = offered(w->options);
	w->most.mem = narrowed(w->total.mem, mem ? most.mem : 0);
	w->most.cpus_milli = narrowed(w->total.cpus_milli, cpus ? most.cpus_milli : 0);
	return r;
}

/* A project of its own, next to the store: what is fetched belongs to it. */
static int make_dir(struct worker *w, struct err *err)
{
	int r = text_set(&w->dir, err, "%s-worker", w->e->store_path);

	return r < 0 ? r : path_make_dirs(w->dir, 0700, err);
}

static int prepare(struct worker *w, struct err *err)
{
	static const char *const by_itself[] = { "default" };
	const struct engine_worker_options *o = w->options;
	int r;

	if (gethostname(w->host, sizeof(w->host) - 1) < 0)
		return err_sys(err, "the name of this machine");
	r = o->name ? text_set(&w->name, err, "%s", o->name)
		    : text_set(&w->name, err, "%s-%d", w->host, (int)getpid());
	w->lease_ms = o->lease_ms > 0 ? o->lease_ms : ENGINE_WORKER_LEASE;
	if (r == 0 && o->jobs > ENGINE_WORKER_JOBS)
		r = err_set(err, -EINVAL, "a worker does at most %d tickets at once",
			    ENGINE_WORKER_JOBS);
	if (r == 0)
		r = sort_labels(&o->labels, &w->labels, err);
	if (r == 0)
		r = target_find(w->e, o->remote, &w->target, err);
	if (r == 0)
		r = make_dir(w, err);
	w->rules = (struct perform_rules){ .url = w->target.url,
					   .remote = target_remote(&w->target),
					   .worker = w->name,
					   .host = w->host,
					   .profiles = o->profiles,
					   .pass_env = o->pass_env,
					   .keys = o->keys };
	if (w->rules.profiles.n == 0)
		w->rules.profiles = (struct engine_list){ by_itself, 1 };
	if (r == 0)
		r = check_profiles(w, err);
	return r < 0 ? r : perform_check_keys(&w->rules.keys, err);
}

int engine_worker(struct engine *e, const struct engine_worker_options *options, struct err *err)
{
	AUTO_FREE struct worker *w = calloc(1, sizeof(*w));
	struct perform_config config;
	struct queue_config queue = { .url = options->queue,
				      .creds = options->creds,
				      .insecure = options->insecure };
	int r;

	if (!w)
		return err_nomem(err);
	w->e = e;
	w->options = options;
	w->signals = SIGNALS_INIT;
	w->started = engine_now();
	w->began = engine_clock_ms();
	r = prepare(w, err);
	config =
	    (struct perform_config){ .store = e->store_path, .dir = w->dir, .rules = &w->rules };
	if (r == 0) {
		w->n_slots = options->jobs > 0 ? options->jobs : 1;
		r = slots_start(w->slots, w->n_slots, &config, err);
	}
	if (r == 0)
		r = signals_begin(&w->signals, 0, err);
	queue.client = w->name;
	if (r == 0)
		r = queue_open(&queue, &w->queue, err);
	if (r == 0)
		r = worker_serve(w, err);
	if (r == 0) {
		worker_tell(w, &(struct engine_worker_event){ .what = "ready", .text = w->name });
		r = worker_loop(w, err);
	}
	worker_done(w);
	return r;
}
