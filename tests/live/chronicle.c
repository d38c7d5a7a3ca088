/*
 * chronicle - give a project a long history without capturing it thousands of times.
 *
 *   chronicle STORE SNAPSHOTS PATH VERSIONS [NEIGHBOURS]
 *
 * The project is the only one of the store and has one snapshot, and no daemon runs.  Each new snapshot
 * follows the one before and changes one file: PATH in VERSIONS of them, evenly spread, which then
 * gets one line more; else one of its NEIGHBOURS in the same directory (files n0, n1, ...; 0: none,
 * a file at the top is changed instead).  Each is one batch, as the daemon commits one.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "cowfs/store/catalog.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-edit.h"

#define APART INT64_C(100000) /* nanoseconds between two snapshots */

struct chronicle {
	struct store *store;
	struct cache *cache;
	struct snapshot last; /* owned */
	const char *path;
	struct buf text; /* of PATH */
};

static void chronicle_done(struct chronicle *c)
{
	buf_done(&c->text);
	snapshot_done(&c->last);
	cache_free(c->cache);
	store_close(c->store);
}

/* Put `entry` at a path of `dir`, and say what `dir` becomes. */
static int edit(struct chronicle *c, struct batch *b, const char *path, const struct content *file,
		const struct object_id *dir, struct object_id *ret, struct tree_summary *ret_below,
		struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const size_t n = strcspn(path, "/");
	struct tree_entry e = { .mode = S_IFREG | 0644, .ino = 7, .mtime_s = 1 };
	const struct tree_change change = { .name = path, .name_len = n, .entry = &e };
	int r = tree_lookup(c->store, dir, path, n, &e, &hold, err);

	if (r < 0 && (r != -ENOENT || path[n] == '/'))
		return r;
	e.name = path;
	e.name_len = n;
	if (path[n] == '/')
		r = edit(c, b, path + n + 1, file, &e.id, &e.id, &e.below, err);
	else
		tree_entry_set_content(&e, file);
	if (r < 0 && r != -ENOENT)
		return r;
	return tree_edit(b, c->cache, dir, &change, 1, ret, ret_below, err);
}

static int add(struct chronicle *c, const char *path, const struct buf *text, unsigned number,
	       struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct snapshot next = c->last;
	struct content file;
	char message[32];
	struct root root;
	int r = batch_begin(c->store, &b, err);

	if (r < 0)
		return r;
	r = root_get(c->store, &c->last.root, &root, err);
	if (r < 0)
		return r;
	r = content_put(b, text->data, text->len, &file, err);
	if (r < 0)
		return r;
	r = edit(c, b, path, &file, &root.top.id, &root.top.id, &root.top.below, err);
	if (r < 0)
		return r;
	r = root_put(b, &root, &next.root, err);
	if (r < 0)
		return r;
	r = catalog_id_new(&next.id, err);
	if (r < 0)
		return r;
	snprintf(message, sizeof(message), "number %u", number);
	next.message = message;
	next.parent = c->last.id;
	next.created = c->last.created + APART;
	next.made = SNAPSHOT_MADE_BY_USER;
	r = snapshot_put(b, &next, REF_NEW, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	next.message = c->last.message;
	c->last = next;
	return 0;
}

static int write_all(struct chronicle *c, unsigned snapshots, unsigned versions,
		     unsigned neighbours, struct err *err)
{
	CLEANUP(buf_done) struct buf other = BUF_INIT;
	const char *slash = strrchr(c->path, '/');
	const int above = slash ? (int)(slash + 1 - c->path) : 0;
	char line[64], path[PATH_MAX];
	int r = 0;

	for (unsigned i = 1; i <= snapshots && r >= 0; i++) {
		const bool mine =
		    (uint64_t)i * versions / snapshots != (uint64_t)(i - 1) * versions / snapshots;
		struct buf *text = mine ? &c->text : &other;

		snprintf(line, sizeof(line), "line of snapshot %u\n", i);
		if (!mine)
			buf_reset(text);
		if (buf_append_str(text, line) < 0)
			return err_nomem(err);
		snprintf(path, sizeof(path), "%.*sn%u", above, c->path,
			 neighbours > 0 ? i % neighbours : 0);
		r = add(c, mine ? c->path : neighbours > 0 ? path : "other", text, i, err);
	}
	return r;
}

static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct chronicle *c = ctx;

	if (c->last.message)
		return err_set(err, -EEXIST, "the store has more than one snapshot");
	c->last = *s;
	c->last.message = strdup(s->message);
	c->last.clone = c->last.meta = c->last.lacks = NULL;
	return c->last.message ? 0 : err_nomem(err);
}

static int run(struct chronicle *c, char **argv, unsigned neighbours, struct err *err)
{
	const struct cache_limits limits = { .chunk_bytes = 16 << 20, .meta_bytes = 64 << 20 };
	int r = store_open(argv[1], STORE_WRITE, &c->store, err);

	if (r < 0)
		return r;
	r = cache_new(c->store, &limits, &c->cache, err);
	if (r < 0)
		return r;
	r = snapshot_each(c->store, on_snapshot, c, err);
	if (r < 0)
		return r;
	if (!c->last.message)
		return err_set(err, -ENOENT, "the store has no snapshot");
	return write_all(c, (unsigned)strtoul(argv[2], NULL, 10),
			 (unsigned)strtoul(argv[4], NULL, 10), neighbours, err);
}

int main(int argc, char **argv)
{
	CLEANUP(chronicle_done) struct chronicle c = { 0 };
	struct err err = { 0 };

	if (argc < 5) {
		fprintf(stderr, "usage: chronicle STORE SNAPSHOTS PATH VERSIONS [NEIGHBOURS]\n");
		return 2;
	}
	c.path = argv[3];
	if (run(&c, argv, argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 0, &err) < 0) {
		fprintf(stderr, "chronicle: %s\n", err.msg);
		return 1;
	}
	return 0;
}
