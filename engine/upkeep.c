#include "engine/upkeep.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "cowfs/store/check.h"
#include "cowfs/store/gc.h"
#include "cowfs/store/root.h"
#include "cowfs/store/unshared.h"
#include "engine/host-i.h"
#include "engine/retain-i.h"
#include "engine/upkeep-i.h"

/* --- stats ------------------------------------------------------------------------------ */

struct census {
	struct store *store;
	struct engine_stats stats;
};

void engine_stats_done(struct engine_stats *s)
{
	for (size_t i = 0; i < s->n_shares; i++) {
		free(s->shares[i].clone);
		free(s->shares[i].project);
	}
	free(s->shares);
	*s = (struct engine_stats){ 0 };
}

static void census_done(struct census *c)
{
	engine_stats_done(&c->stats);
}

static int count_project(const struct project *p, void *ctx, struct err *err)
{
	(void)p;
	(void)err;
	((struct census *)ctx)->stats.projects++;
	return 0;
}

static int count_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct census *c = ctx;

	(void)err;
	c->stats.snapshots++;
	c->stats.logical += s->bytes;
	return 0;
}

static int count_tag(const struct tag *t, void *ctx, struct err *err)
{
	(void)t;
	(void)err;
	((struct census *)ctx)->stats.tags++;
	return 0;
}

/* What it started from is there as long as it is itself. */
static int measure(struct store *s, const struct clone *clone, struct engine_share *ret,
		   struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	struct unshared unshared;
	struct root root;
	int r;

	r = root_get(s, &clone->root, &root, err);
	if (r >= 0)
		r = engine_as_damage(err, snapshot_get(s, &clone->base, &base, err));
	if (r >= 0)
		r = engine_as_damage(err, project_get(s, &clone->project, &project, err));
	if (r >= 0)
		r = unshared_count(s, &clone->root, &base.root, &unshared, err);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", clone->name);
	ret->logical = root.top.below.bytes + root.in_links.bytes;
	ret->unshared = unshared.bytes;
	ret->clone = strdup(clone->name);
	ret->project = TAKE_PTR(project.path);
	return ret->clone ? 0 : err_nomem(err);
}

static int count_clone(const struct clone *clone, void *ctx, struct err *err)
{
	struct engine_stats *s = &((struct census *)ctx)->stats;
	struct engine_share *list = reallocarray(s->shares, s->n_shares + 1, sizeof(*list));
	int r;

	if (!list)
		return err_nomem(err);
	s->shares = list;
	list += s->n_shares++;
	*list = (struct engine_share){ 0 };
	r = measure(((struct census *)ctx)->store, clone, list, err);
	s->clones++;
	s->logical += list->logical;
	return r;
}

int engine_stats(struct engine *e, struct engine_stats *ret, struct err *err)
{
	CLEANUP(census_done) struct census c = { 0 };
	struct store_sizes sizes = { 0 };
	int r;

	r = engine_store(e, STORE_READ, &c.store, err);
	if (r >= 0)
		r = project_each(c.store, count_project, &c, err);
	if (r >= 0)
		r = snapshot_each(c.store, count_snapshot, &c, err);
	if (r >= 0)
		r = tag_each(c.store, count_tag, &c, err);
	if (r >= 0)
		r = clone_each(c.store, count_clone, &c, err);
	if (r >= 0)
		r = store_sizes(c.store, &sizes, err);
	if (r < 0)
		return r;
	c.stats.chunks = sizes.chunks;
	c.stats.objects = sizes.objects;
	c.stats.stored = sizes.chunk_bytes + sizes.object_bytes;
	c.stats.disk = sizes.file_bytes;
	c.stats.free = sizes.free_bytes;
	*ret = c.stats;
	c.stats = (struct engine_stats){ 0 };
	return 0;
}

/* --- check ------------------------------------------------------------------------------ */

static void free_damage(struct engine_damage *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct engine_damage *d = &list[i];

		for (size_t k = 0; k < d->n_paths; k++)
			free(d->paths[k]);
		free(d->paths);
		free(d->object);
		free(d->why);
		free(d->from);
	}
	free(list);
}

void engine_check_done(struct engine_check *c)
{
	free_damage(c->damage, c->n_damage);
	free_damage(c->restored, c->n_restored);
	*c = (struct engine_check){ 0 };
}

int upkeep_take_finding(struct check_finding *f, struct engine_damage *d, struct err *err)
{
	d->object = strdup(f->what);
	d->why = strdup(f->why);
	if (!d->object || !d->why)
		return err_nomem(err);
	d->paths = TAKE_PTR(f->paths);
	d->n_paths = f->n_kept;
	d->n_paths_all = f->n_paths;
	f->n_kept = 0;
	return 0;
}

static void on_check(uint64_t done, uint64_t total, void *ctx)
{
	const struct engine_watch *watch = ctx;
	struct engine_progress p = { .doing = "checking", .done = done, .total = total };

	watch->fn(&p, watch->ctx);
}

/*
 * As its one writer if that can be had, so that nobody removes what is being looked
 * at.  A store that can only be read has no writer; one too damaged to be written
 * may still be readable.
 */
static int open_to_check(struct engine *e, struct store **ret, struct err *err)
{
	int r = engine_store(e, STORE_WRITE, ret, err);

	if (r == -EROFS || r == -EACCES || r == -EPERM || r == -EBADMSG)
		r = engine_store(e, STORE_READ, ret, err);
	return r;
}

int upkeep_look(struct store *s, const struct engine_watch *watch, struct check_report *ret,
		struct err *err)
{
	struct engine_watch w = *watch;

	return check_store(s, w.fn ? on_check : NULL, &w, ret, err);
}

int upkeep_check(struct engine *e, const struct engine_check_options *options,
		 struct engine_check *ret, struct err *err)
{
	CLEANUP(check_report_done) struct check_report report = { 0 };
	CLEANUP(engine_check_done) struct engine_check c = { 0 };
	uint64_t start = engine_clock_ms();
	struct store *s;
	int r;

	r = options->repair ? engine_store(e, STORE_WRITE, &s, err) : open_to_check(e, &s, err);
	if (r >= 0)
		r = upkeep_look(s, &options->watch, &report, err);
	if (r >= 0 && options->repair && report.n_findings > 0)
		r = upkeep_repair(e, &options->watch, &report, &c, err);
	if (r < 0)
		return r;
	c.objects = report.objects;
	c.bytes = report.bytes;
	c.refs = report.refs;
	if (report.n_findings > 0) {
		c.damage = calloc(report.n_findings, sizeof(*c.damage));
		if (!c.damage)
			return err_nomem(err);
	}
	for (; c.n_damage < report.n_findings && r >= 0; c.n_damage++)
		r = upkeep_take_finding(&report.findings[c.n_damage], &c.damage[c.n_damage], err);
	if (r < 0)
		return r;
	c.elapsed_ms = engine_clock_ms() - start;
	*ret = c;
	c = (struct engine_check){ 0 };
	return 0;
}

/* --- gc --------------------------------------------------------------------------------- */

#define GC_BUDGET 1024 /* objects between two reports */

void engine_gc_done(struct engine_gc *gc)
{
	engine_history_done(&gc->forgotten);
	*gc = (struct engine_gc){ 0 };
}

static bool is_forgotten(const struct ref *ref, void *ctx)
{
	struct catalog_id id;

	return ref->kind == REF_SNAPSHOT && ref->name_len == CATALOG_HEX_SIZE - 1 &&
	       hex_decode(ref->name, ref->name_len, id.b, sizeof(id.b)) >= 0 &&
	       forget_goes(ctx, &id);
}

static int collect(struct store *s, struct forget *without, const struct engine_watch *watch,
		   struct gc_progress *ret, struct err *err)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	int r;

	r = without ? gc_begin_trial(s, is_forgotten, without, &g, err) : gc_begin(s, &g, err);
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
	}
	return r;
}

/* The records go first; what only they reached is then garbage like any other. */
static int forget_some(struct host *h, const struct engine_gc_options *options, struct forget *f,
		       struct engine_history *ret, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	uint64_t gone;
	int r;

	r = retain_choose(h->store, options, f, ret, err);
	if (r < 0 || options->dry_run || ret->n == 0)
		return r;
	r = batch_begin(h->store, &b, err);
	if (r >= 0)
		r = forget_put(f, b, &gone, err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

static int forget_by_rule(struct host *h, const struct engine_gc_options *options, struct forget *f,
			  struct engine_history *ret, struct err *err)
{
	int r;

	pthread_rwlock_wrlock(&h->snapshots);
	r = forget_some(h, options, f, ret, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

int upkeep_gc(struct engine *e, const struct engine_gc_options *options, struct engine_gc *ret,
	      struct err *err)
{
	CLEANUP(engine_gc_done) struct engine_gc gc = { 0 };
	CLEANUP(forget_done) struct forget forget = { 0 };
	uint64_t start = engine_clock_ms();
	struct gc_progress progress = { 0 };
	struct store_sizes before, after;
	struct store *s;
	int r;

	r = engine_store(e, STORE_WRITE, &s, err);
	if (r >= 0)
		r = forget_by_rule(e->host, options, &forget, &gc.forgotten, err);
	if (r < 0)
		return r;
	if (!options->dry_run)
		spare_let_go(e->host->spare);
	/* The logs go first, so that before and after are measured alike. */
	r = store_checkpoint(s, err);
	if (r >= 0)
		r = store_sizes(s, &before, err);
	if (r >= 0)
		r = collect(s, options->dry_run ? &forget : NULL, &options->watch, &progress, err);
	if (r >= 0)
		r = store_checkpoint(s, err);
	if (r >= 0)
		r = store_sizes(s, &after, err);
	if (r < 0)
		return r;
	gc.kept = progress.marked;
	gc.removed = progress.swept;
	gc.freed = progress.swept_bytes;
	gc.disk_before = before.file_bytes;
	gc.disk_after = after.file_bytes;
	gc.elapsed_ms = engine_clock_ms() - start;
	*ret = gc;
	gc = (struct engine_gc){ 0 };
	return 0;
}
