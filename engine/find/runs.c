#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fdio.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/find/event-i.h"
#include "engine/find/moved-i.h"
#include "engine/find/run-record.h"

#define REMOVED_MAX 500 /* ids in an event */

/* --- listing ---------------------------------------------------------------------------- */

struct listing {
	struct engine *engine;
	const struct engine_runs_options *options;
	const struct project *project; /* NULL: all projects */
	struct engine_runs runs;
};

static void listing_done(struct listing *l)
{
	engine_runs_done(&l->runs);
}

static bool is_wanted(const struct listing *l, const struct engine_run *run)
{
	const struct engine_runs_options *o = l->options;

	return !(o->clone && strcmp(o->clone, run->clone) != 0) &&
	       !(l->project &&
		 !moved_is_of(l->project, run->project_id, run->project, run->started)) &&
	       !(o->running && run->state != ENGINE_RUN_RUNNING);
}

/* A record that cannot be read, perhaps because it was just removed, is skipped. */
static int list_one(const char *id, void *ctx)
{
	struct listing *l = ctx;
	struct engine_runs *runs = &l->runs;
	struct engine_run *one;
	struct err err = { 0 };
	int r;

	/* Of the thousands that may be kept only a few run; the others need not be read to know it. */
	if (l->options->running && !run_record_is_live(l->engine->store_path, id))
		return 0;
	if (!VEC_ONE_MORE(runs->list, runs->n))
		return -ENOMEM;
	one = &runs->list[runs->n];
	*one = (struct engine_run){ 0 };
	r = run_record_read(l->engine->store_path, id, one, &err);
	if (r < 0 && r != -ENOENT)
		log_warn("%s, continuing", err.msg);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (is_wanted(l, one))
		runs->n++;
	else
		engine_run_done(one);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct engine_run *x = a, *y = b;

	return (x->started < y->started) - (x->started > y->started);
}

int engine_runs(struct engine *e, const struct engine_runs_options *options,
		struct engine_runs *ret, struct err *err)
{
	CLEANUP(listing_done) struct listing l = { .engine = e, .options = options };
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;
	int r;

	/* If the store cannot be read, neither can its records. */
	r = engine_store(e, STORE_READ, &s, err);
	if (r == -ENOENT && options->all)
		return 0;
	if (r < 0 && r != -ENOENT)
		return r;
	if (!options->all && !options->clone)
		r = engine_project(e, &s, &project, err);
	if (r < 0)
		return r;
	l.project = project.path ? &project : NULL;
	r = run_record_each(e->store_path, list_one, &l, err);
	if (r < 0)
		return r;
	VEC_SORT(l.runs.list, l.runs.n, by_start);
	*ret = TAKE_STRUCT(l.runs);
	return 0;
}

/* --- whether there is one --------------------------------------------------------------- */

struct search {
	const char *store, *wall, *but;
};

/* 1: found, which ends the search. */
static int has_lacked(const char *id, void *ctx)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const struct search *s = ctx;

	if (strcmp(id, s->but) == 0 || run_record_read(s->store, id, &run, NULL) < 0)
		return 0;
	for (size_t i = 0; i < run.missing.n; i++)
		if (strcmp(run.missing.list[i].wall, s->wall) == 0)
			return 1;
	return 0;
}

bool engine_runs_lacked(struct engine *e, const char *wall, const char *but)
{
	struct search s = { e->store_path, wall, but };

	return run_record_each(e->store_path, has_lacked, &s, NULL) != 0;
}

/* --- one -------------------------------------------------------------------------------- */

/* A whole id names its record, and no other need be read. */
static bool is_whole(const char *id)
{
	return id && strlen(id) == ENGINE_RUN_ID_SIZE - 1 &&
	       strspn(id, "0123456789abcdef") == ENGINE_RUN_ID_SIZE - 1;
}

int engine_run_find(struct engine *e, const char *id, struct engine_run *ret, struct err *err)
{
	const struct engine_runs_options options = { .all = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	struct engine_run *found = NULL;
	int r;

	if (is_whole(id) && run_record_read(e->store_path, id, ret, NULL) >= 0)
		return 0;
	r = engine_runs(e, &options, &runs, err);
	if (r < 0)
		return r;
	if (!id && runs.n == 0)
		return err_set(err, -ENOENT, "nothing was run yet");
	if (id && *id == '\0')
		return err_set(err, -EINVAL, "the id of the run is empty");
	for (size_t i = 0; i < runs.n; i++) {
		if (id && strncmp(runs.list[i].id, id, strlen(id)) != 0)
			continue;
		if (found && id)
			return err_set(err, -EINVAL, "'%s' begins the ids of several runs", id);
		found = found ? found : &runs.list[i];
	}
	if (!found)
		return err_set(err, -ENOENT, "there is no run '%s'", id);
	*ret = *found;
	*found = (struct engine_run){ 0 };
	return 0;
}

int engine_run_has_start(struct engine *e, const struct engine_run *run, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot start = { 0 };
	struct store *s;
	int r;

	if (*run->before == '\0')
		return 0;
	r = engine_store(e, STORE_READ, &s, err);
	r = r < 0 ? r : snapshot_find(s, run->before, &start, err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

void engine_run_look(const struct engine_run *run, struct engine_run_use *ret)
{
	const int64_t ran_ms = (engine_now() - run->started) / 1000000;
	struct sys_tree tree;

	*ret = (struct engine_run_use){ 0 };
	if (run->limits.time_ms > 0)
		ret->left_ms = ran_ms < (int64_t)run->limits.time_ms
				   ? run->limits.time_ms - (uint64_t)ran_ms
				   : 1;
	if (sys_look_at_tree(run->pid, &tree) < 0)
		return;
	ret->known = true;
	ret->processes =
	    tree.processes > 2 ? tree.processes - 2 : 0; /* without the supervisor and the init */
	ret->memory = tree.memory;
	ret->cpu_ms = tree.cpu_ms;
	ret->written = tree.written;
}

/* --- retention -------------------------------------------------------------------------- */

/* Bytes of what it said. */
static uint64_t log_bytes(const char *store, const char *id)
{
	AUTO_FREE char *path = run_record_path(store, id, ".log");
	struct stat st;

	return path && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Told first: a record that is still there does no harm, one that is gone unsaid would. */
static void announce_removal(const char *store, const struct engine_run *const *list, size_t n)
{
	struct event ev;
	struct json ids;

	event_begin(&ev, "runs-removed", (struct event_subject){ 0 });
	ids = json_set_array(ev.data, "runs");
	for (size_t i = 0; i < n; i++)
		json_add_text(ids, list[i]->id);
	event_end(&ev, store);
}

static void remove_all(const char *store, const struct engine_run *const *list, size_t n)
{
	for (size_t i = 0, some; i < n; i += some) {
		some = n - i < REMOVED_MAX ? n - i : REMOVED_MAX;
		announce_removal(store, list + i, some);
		for (size_t k = 0; k < some; k++)
			run_record_remove(store, list[i + k]->id);
	}
}

int engine_runs_prune(struct engine *e, bool dry_run, uint64_t *ret, struct err *err)
{
	const int64_t oldest = engine_now() - (int64_t)ENGINE_RUNS_DAYS * 86400 * 1000000000;
	const struct engine_runs_options options = { .all = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	AUTO_FREE const struct engine_run **gone = NULL;
	uint64_t logged = 0;
	int r = engine_runs(e, &options, &runs, err);

	*ret = 0;
	gone = calloc(runs.n + 1, sizeof(*gone));
	if (!gone)
		return err_nomem(err);
	for (size_t i = 0; r >= 0 && i < runs.n; i++) {
		const struct engine_run *run = &runs.list[i];
		const bool young = i < ENGINE_RUNS_KEPT && run->started >= oldest;

		logged += log_bytes(e->store_path, run->id);
		if (run_record_is_live(e->store_path, run->id) ||
		    (young && (i == 0 || logged <= ENGINE_RUNS_LOG_MAX)))
			continue;
		gone[(*ret)++] = run;
	}
	if (r >= 0 && !dry_run)
		remove_all(e->store_path, gone, (size_t)*ret);
	return r;
}

static int count_one(const char *id, void *ctx)
{
	++*(size_t *)ctx;
	return 0;
}

void runs_tidy(struct engine *e, uint64_t logged)
{
	struct err err = { 0 };
	uint64_t removed;
	size_t n = 0;
	int r = run_record_each(e->store_path, count_one, &n, &err);

	if (r >= 0 && (n > 2 * ENGINE_RUNS_KEPT || logged > ENGINE_RUNS_LOG_MAX / 1024))
		r = engine_runs_prune(e, false, &removed, &err);
	if (r < 0)
		log_warn("records of old runs stay: %s, continuing", err.msg);
}
