/*
 * Directories, attributes and the lists of chunks of large files are in packs of their own, which
 * come first. cowfsd makes a snapshot of them in which the bytes of files are promised; a process
 * of its own fetches those (fetcher.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "engine/ask/start-ahead-i.h"
#include "engine/transfer/fetching-i.h"
#include "engine/transfer/lazy-i.h"
#include "remote/pack/pack.h"

#define LAZY_MIN ((uint64_t)1 << 20) /* packed bytes; less comes as soon as a process has started */

struct lazy_fetch {
	struct fetching *f;
	struct lazy_dir dir;
};

static void lazy_fetch_done(struct lazy_fetch *l)
{
	lazy_dir_done(&l->dir);
}

/* --- what is here already ----------------------------------------------------------------- */

static int describe(struct fetching *f, struct store *store, const struct snapshot *s,
		    struct engine_received *got, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	int r = project_get(store, &s->project, &project, err);

	if (r < 0)
		return r;
	got->project = strdup(project.path);
	if (!got->project)
		return err_nomem(err);
	f->same = true;
	return history_entry(s, &got->snapshot, err);
}

/* The project has come to look like a later one since: a clone of this one would take that back. */
static bool is_stale(const struct fetching *f, const struct snapshot *s)
{
	char hex[CATALOG_HEX_SIZE];

	return s->clone && f->known.snapshot[0] != '\0' &&
	       strcmp(catalog_id_hex(&s->base, hex), f->known.snapshot) != 0;
}

/* 1 if the project has exactly this snapshot, complete or on its way: it is not fetched twice. */
static int find_same(struct fetching *f, struct engine_received *got, struct err *err)
{
	CLEANUP(project_done) struct project here = { 0 };
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct err ignored = { 0 };
	struct store *store;
	int r;

	if (!f->has_seen || !digest_equal(&f->seen.manifest, &f->digest) ||
	    engine_store(f->e, STORE_READ, &store, &ignored) < 0 ||
	    snapshot_find(store, f->seen.snapshot, &s, &ignored) < 0 ||
	    project_choose(f->e, store, NULL, &here, &ignored) < 0 ||
	    !catalog_id_same(&here.id, &s.project) || is_stale(f, &s))
		return 0;
	r = describe(f, store, &s, got, err);
	return r < 0 ? r : 1;
}

/* --- names and attributes ----------------------------------------------------------------- */

static int bring_one(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct lazy_fetch *l = ctx;
	struct fetching *f = l->f;
	const struct manifest_pack *p = &f->manifest.packs[i];
	const struct depot_watch watch = { .moved = meter_moved, .ctx = &f->meter };
	CLEANUP(buf_done) struct buf index = BUF_INIT;
	struct depot *d;
	int r = connections_get(&f->lines, member, &d, err);

	if (r == 0)
		r = lazy_bring_index(&l->dir, d, p, &watch, &index, err);
	/* What another snapshot shares is asked for if it is needed. */
	if (r < 0 || pack_index_is_content(index.data, index.len) ||
	    fetching_has(f, &p->pack.digest))
		return r;
	r = lazy_bring_pack(&l->dir, d, p, &index, &watch, err);
	LOCKED(&f->meter.lock);
	f->n_brought += r == 0;
	return r;
}

static int write_source(const struct lazy_fetch *l, struct err *err)
{
	const struct fetching *f = l->f;
	const struct lazy_source s = {
		.url = f->target.url,
		.name = f->target.name,
		.from = f->tag,
		.rate = f->options->rate,
		.jobs = f->options->jobs,
		.packs = f->manifest.packs,
		.n = f->manifest.n,
	};

	return lazy_source_write(&l->dir, &s, err);
}

static uint64_t bytes_to_come(const struct fetching *f)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->manifest.n; i++)
		if (!fetching_has(f, &f->manifest.packs[i].pack.digest))
			n += f->manifest.packs[i].pack.size + f->manifest.packs[i].index.size;
	return n;
}

static int begin(struct lazy_fetch *l, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	struct catalog_id id;
	int r = catalog_id_new(&id, err);

	if (r == 0)
		r = lazy_dir_open(l->f->e, catalog_id_hex(&id, hex), true, &l->dir, err);
	if (r == 0)
		r = lazy_dir_lock(&l->dir, err);
	if (r == 0)
		r = fetching_check_room(l->f, l->dir.fd, bytes_to_come(l->f), err);
	return r == 0 ? write_source(l, err) : r;
}

static int bring_names(struct lazy_fetch *l, struct err *err)
{
	struct fetching *f = l->f;
	const size_t n = f->manifest.n;
	char hex[SHA256_HEX_SIZE];
	int r = crew_each(f->lines.n < n ? f->lines.n : (unsigned)n, n, bring_one, l, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (strlist_add(&f->packs, hex_encode(f->manifest.packs[i].pack.digest.b,
						      SHA256_SIZE, hex)) < 0)
			r = err_nomem(err);
	return r;
}

/* --- the snapshot ------------------------------------------------------------------------- */

struct ranges {
	struct lazy_fetch *l;
	const struct engine_range *list;
};

static int bring_range(unsigned member, size_t i, void *ctx, struct err *err)
{
	const struct ranges *r = ctx;
	struct fetching *f = r->l->f;
	const struct depot_watch watch = { .moved = meter_moved, .ctx = &f->meter };
	struct depot *d;
	int rc = connections_get(&f->lines, member, &d, err);

	return rc < 0 ? rc : lazy_bring_range(&r->l->dir, d, &r->list[i], &watch, err);
}

static int receive(struct lazy_fetch *l, struct engine_received *got, struct err *err)
{
	char root[SHA256_HEX_SIZE];
	struct engine_receive_options o = fetching_options(l->f, root);

	snprintf(o.lazy, sizeof(o.lazy), "%s", l->dir.id);
	for (unsigned round = 0; round < FETCHING_ROUNDS_MAX; round++) {
		struct ranges ranges = { .l = l };
		int r = engine_receive_lazily(l->f->e, &o, got, &l->f->hold, err);

		if (r < 0 || got->n_ranges == 0)
			return r;
		cleanup_close(&l->f->hold);
		ranges.list = got->ranges;
		r = crew_each(l->f->lines.n, got->n_ranges, bring_range, &ranges, err);
		engine_received_done(got);
		if (r < 0)
			return r;
	}
	return err_set(err, -EBADMSG, "'%s' of '%s' never comes to an end", l->f->target.name,
		       l->f->target.url);
}

/* The snapshot is there: if no process can be started, the next command tries again. */
static void go_on(struct lazy_fetch *l)
{
	struct err err = { 0 };

	cleanup_close(&l->dir.lock);
	if (fetcher_start(l->f->e, &l->dir, &err) < 0)
		engine_warn(l->f->e, "%s; the next command starts it", err.msg);
}

static int fetch(struct lazy_fetch *l, struct engine_received *got, struct err *err)
{
	int r;

	/* Before the directory is made: that waits for the disk. */
	start_ahead(l->f->e);
	r = begin(l, err);
	r = r < 0 ? r : bring_names(l, err);
	r = r < 0 ? r : receive(l, got, err);
	if (r == 0 && got->promised)
		go_on(l);
	else if (l->dir.fd >= 0)
		lazy_dir_remove(&l->dir);
	return r;
}

int fetch_lazily(struct fetching *f, struct engine_received *got, struct err *err)
{
	CLEANUP(lazy_fetch_done) struct lazy_fetch l = { .f = f, .dir = LAZY_DIR_INIT };
	int r;

	if (f->manifest.sealed || manifest_packed(&f->manifest) < LAZY_MIN)
		return 1;
	r = find_same(f, got, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = fetch(&l, got, err);
	if (r == -EBUSY)
		strlist_done(&f->packs);
	return r == -EBUSY ? 1 : r;
}
