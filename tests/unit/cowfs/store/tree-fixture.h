/*
 * tree-fixture.h - for tests of trees: entries of every sort, and a store to put them in.
 */
#pragma once

#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/tree.h"
#include "tests/lib/stock.h"
#include "tests/lib/test.h"

/* Samples are canonical, and no field is zero that need not be. */
static const struct object_id sample_id = { { 0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
					      15 } };
static const struct object_id sample_other_id = { { [15] = 1 } };

static inline struct tree_entry sample_entry(const char *name, enum tree_form form, uint32_t mode)
{
	struct tree_entry e = {
		.name = name,
		.name_len = strlen(name),
		.form = form,
		.mode = mode,
		.uid = 1000,
		.gid = 0xfffffffe,
		.ino = 0x0102030405060708,
		.mtime_s = -1,
		.ctime_s = 1700000000,
		.mtime_ns = 999999999,
		.ctime_ns = 1,
	};

	if (form != TREE_NONE)
		e.id = sample_id;
	return e;
}

static inline struct tree_entry sample_file(const char *name, uint64_t size)
{
	enum tree_form form = size > CHUNK_SIZE_MAX ? TREE_RECIPE
			      : size > 0            ? TREE_CHUNK
						    : TREE_NONE;
	struct tree_entry e = sample_entry(name, form, S_IFREG | 0644);

	e.size = size;
	e.data = size;
	return e;
}

static inline struct tree_entry sample_hole(const char *name, uint64_t size)
{
	struct tree_entry e = sample_entry(name, TREE_NONE, S_IFREG | 07777);

	e.size = size;
	return e;
}

static inline struct tree_entry sample_directory(const char *name)
{
	struct tree_entry e = sample_entry(name, TREE_DIR, S_IFDIR | 01777);

	e.xattrs = sample_other_id;
	e.below = (struct tree_summary){ .files = 5, .bytes = 1 << 20, .links = true };
	return e;
}

static inline struct tree_entry sample_symlink(const char *name, const char *target)
{
	struct tree_entry e = sample_entry(name, TREE_NONE, S_IFLNK | 0777);

	e.target = target;
	e.target_len = strlen(target);
	e.size = e.target_len;
	return e;
}

static inline struct tree_entry sample_device(const char *name)
{
	struct tree_entry e = sample_entry(name, TREE_NONE, S_IFBLK | 0600);

	e.rdev = 0x801;
	return e;
}

static inline struct tree_entry sample_link(const char *name)
{
	return (struct tree_entry){
		.name = name,
		.name_len = strlen(name),
		.form = TREE_LINK,
		.mode = S_IFREG,
		.ino = 77,
	};
}

/* A store of its own for each test, and what writes to it. */
struct world {
	struct store *s;
	struct batch *b;
	struct tree_builder *t;
};

static inline void world_begin(struct world *w)
{
	struct err err = { 0 };

	w->b = stock_begin(w->s);
	CHECK_OK(tree_builder_new(w->b, &w->t, &err), &err);
}

static inline struct world world_new(const char *name)
{
	struct world w = { .s = stock_open(test_path(name), STORE_CREATE) };

	world_begin(&w);
	return w;
}

static inline void world_done(struct world *w)
{
	tree_builder_free(w->t);
	batch_end(w->b);
	store_close(w->s);
}

/* What was put so far can now be read. */
static inline void world_commit(struct world *w)
{
	stock_commit(w->b);
	tree_builder_free(w->t);
	batch_end(w->b);
	world_begin(w);
}

static inline void world_add(struct world *w, const struct tree_entry *list, size_t n)
{
	struct err err = { 0 };

	for (size_t i = 0; i < n; i++)
		CHECK_OK(tree_builder_add(w->t, &list[i], &err), &err);
}

static inline struct object_id world_finish(struct world *w, struct tree_summary *ret_below)
{
	struct tree_summary below;
	struct err err = { 0 };
	struct object_id id;

	CHECK_OK(tree_builder_finish(w->t, &id, &below, &err), &err);
	if (ret_below)
		*ret_below = below;
	return id;
}

static inline struct object_id world_build(struct world *w, const struct tree_entry *list, size_t n)
{
	struct object_id id;

	world_add(w, list, n);
	id = world_finish(w, NULL);
	world_commit(w);
	return id;
}
