#include "engine/api/metrics.h"

#include <errno.h>

#include "engine/api/events.h"
#include "engine/ask/ask-i.h"
#include "engine/find/engine-i.h"

void engine_metrics_done(struct engine_metrics *m)
{
	fields_done(&wire_metrics, &m->daemon);
}

static int ask_for_it(struct engine *e, struct engine_metrics *m, struct err *err)
{
	CLEANUP(ask_done) struct ask a;
	struct err why = { 0 };
	struct json answer;
	int r;

	ask_begin(&a, e, VERB_METRICS);
	r = ask_daemon(&a, e, ASK_RUNNING, NULL, &answer, &why);
	/* None runs, or one of another version: what the store says is still worth having. */
	if (r < 0)
		return r == -ENOMEM ? err_nomem(err) : 0;
	r = ask_take(&a, answer, &wire_metrics, &m->daemon, err);
	m->up = r >= 0;
	return r;
}

static int on_project(const struct project *p, void *ctx, struct err *err)
{
	((struct engine_metrics *)ctx)->projects += p->hidden == PROJECT_SHOWN;
	return 0;
}

static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct engine_metrics *m = ctx;

	m->snapshots++;
	m->automatic += history_is_automatic(s);
	m->logical += s->bytes;
	return 0;
}

static int on_clone(const struct clone *c, void *ctx, struct err *err)
{
	((struct engine_metrics *)ctx)->clones++;
	return 0;
}

static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	struct engine_metrics *m = ctx;

	if (r->state == RECEIPT_BEGUN)
		return 0;
	m->promotions += r->kind == RECEIPT_PROMOTION;
	m->rollbacks += r->kind == RECEIPT_ROLLBACK;
	m->undos += r->kind == RECEIPT_UNDO;
	return 0;
}

static int count_records(struct store *s, struct engine_metrics *m, struct err *err)
{
	int r = project_each(s, on_project, m, err);

	if (r < 0)
		return r;
	r = snapshot_each(s, on_snapshot, m, err);
	if (r < 0)
		return r;
	r = clone_each(s, on_clone, m, err);
	return r < 0 ? r : receipt_each(s, on_receipt, m, err);
}

static int measure(struct store *s, struct engine_metrics *m, struct err *err)
{
	struct store_sizes sizes = { 0 };
	int r = store_sizes(s, &sizes, err);

	m->stored = sizes.chunk_bytes + sizes.object_bytes;
	m->chunks = sizes.chunks;
	m->objects = sizes.objects;
	m->disk = sizes.file_bytes;
	m->free = sizes.free_bytes;
	return r;
}

static int count_runs(struct engine *e, struct engine_metrics *m, struct err *err)
{
	const struct engine_runs_options all = { .all = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	int r = engine_runs(e, &all, &runs, err);

	for (size_t i = 0; r >= 0 && i < runs.n; i++) {
		const struct engine_run *run = &runs.list[i];

		m->runs[run->state]++;
		m->failed += run->state == ENGINE_RUN_ENDED && run->exit_code != 0;
		m->refusals += run->refusals.n + run->refusals.more;
	}
	return r;
}

int engine_metrics(struct engine *e, struct engine_metrics *ret, struct err *err)
{
	CLEANUP(engine_metrics_done) struct engine_metrics m = { 0 };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = count_records(s, &m, err);
	if (r < 0)
		return r;
	r = measure(s, &m, err);
	if (r < 0)
		return r;
	r = count_runs(e, &m, err);
	if (r < 0)
		return r;
	m.events = engine_events_newest(e);
	r = ask_for_it(e, &m, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(m);
	return 0;
}

int engine_metrics_brief(struct engine *e, struct engine_metrics *ret, struct err *err)
{
	CLEANUP(engine_metrics_done) struct engine_metrics m = { 0 };
	struct store *s;
	int r = engine_store(e, STORE_READ, &s, err);

	if (r < 0)
		return r;
	r = clone_each(s, on_clone, &m, err);
	if (r < 0)
		return r;
	m.disk = store_disk_bytes(s);
	r = ask_for_it(e, &m, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(m);
	return 0;
}
