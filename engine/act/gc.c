#include "engine/api/upkeep.h"

#include "base/hex.h"
#include "cowfs/store/upkeep/gc.h"
#include "engine/act/acts-i.h"
#include "engine/act/growth-i.h"
#include "engine/act/retain-i.h"
#include "engine/act/targets-i.h"
#include "engine/host/host-i.h"

#define GC_BUDGET 1024 /* objects between two reports */

static bool is_forgotten(const struct ref *ref, void *ctx)
{
	struct catalog_id id;

	return ref->kind == REF_SNAPSHOT && ref->name_len == CATALOG_HEX_SIZE - 1 &&
	       hex_decode(ref->name, ref->name_len, id.b, sizeof(id.b)) >= 0 &&
	       forget_goes(ctx, &id);
}

static int collect(struct task *task, struct store *s, struct forget *without,
		   const struct engine_watch *watch, struct gc_progress *ret, struct err *err)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	int r = without ? gc_begin_trial(s, is_forgotten, without, &g, err) : gc_begin(s, &g, err);

	if (r < 0)
		return r;
	while ((r = gc_step(g, GC_BUDGET, ret, err)) > 0) {
		struct engine_progress p = {
			.doing = ret->phase == GC_MARK ? "marking" : "freeing",
			.done = ret->phase == GC_MARK ? ret->marked : ret->swept,
			.bytes = ret->swept_bytes,
		};

		if (watch->fn)
			watch->fn(&p, watch->ctx);
		/* What is freed stays freed; the next gc finds the rest. */
		r = task_wanted(task, err);
		if (r < 0)
			break;
	}
	return r;
}

/* Remove the records first; then what only they reached is garbage. */
static int forget_some(struct host *h, const struct engine_gc_options *options, struct forget *f,
		       struct engine_history *ret, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	uint64_t gone;
	int r = retain_choose(h->store, options, f, ret, err);

	if (r < 0 || options->dry_run || ret->n == 0)
		return r;
	r = batch_begin(h->store, &b, err);
	if (r < 0)
		return r;
	r = forget_put(f, b, &gone, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

static int forget_by_rule(struct host *h, const struct engine_gc_options *options, struct forget *f,
			  struct engine_history *ret, struct err *err)
{
	int r;

	pthread_rwlock_wrlock(&h->snapshots);
	r = forget_some(h, options, f, ret, err);
	if (r >= 0 && !options->dry_run)
		r = targets_sweep(h->store, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

int upkeep_gc(struct task *task, const struct engine_gc_options *options, struct engine_gc *ret,
	      struct err *err)
{
	CLEANUP(engine_gc_done) struct engine_gc gc = { 0 };
	CLEANUP(forget_done) struct forget forget = { 0 };
	uint64_t start = engine_clock_ms();
	struct engine_growth_row grown = { 0 };
	struct gc_progress progress = { 0 };
	uint64_t before;
	struct store *s;
	int r = engine_store(&task->engine, STORE_WRITE, &s, err);

	if (r < 0)
		return r;
	r = task_wanted(task, err);
	if (r < 0)
		return r;
	r = forget_by_rule(task->host, options, &forget, &gc.forgotten, err);
	if (r < 0)
		return r;
	if (!options->dry_run) {
		growth_before_gc(task->host, &grown);
		warm_clone_let_go(task->host->warm_clone);
		moments_forget(&task->host->moments, NULL);
	}
	/* Empty the logs first, so that both measurements are alike. */
	r = store_checkpoint(s, err);
	if (r < 0)
		return r;
	before = store_disk_bytes(s);
	r = collect(task, s, options->dry_run ? &forget : NULL, &options->watch, &progress, err);
	if (r < 0)
		return r;
	r = store_checkpoint(s, err);
	if (r < 0)
		return r;
	growth_after_gc(task->host, &grown, progress.swept_bytes);
	gc.kept = progress.marked;
	gc.removed = progress.swept;
	gc.freed = progress.swept_bytes;
	gc.disk_before = before;
	gc.disk_after = store_disk_bytes(s);
	gc.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(gc);
	return 0;
}
