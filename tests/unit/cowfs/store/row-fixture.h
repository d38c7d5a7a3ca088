/*
 * row-fixture.h - for tests of editing: a directory as a row of names of which each is there, in one
 * of many versions, or not.
 */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "cowfs/store/tree-edit.h"
#include "cowfs/store/tree-node.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/edit-fixture.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

#define NAME_SIZE 24

enum row_kind {
	ORDINARY, /* entries of every sort */
	LONG,     /* symlinks with targets of any length */
	NEVER,    /* long ones in leaves that end at their limit of bytes only */
	ALWAYS,   /* long ones in leaves of six, and those in branches of 64 */
	STEADY,   /* the same, but only as long as no name goes before the end */
};

#define ALWAYS_LEAF   6
#define ALWAYS_BRANCH (64 * ALWAYS_LEAF)

struct row {
	enum row_kind kind;
	size_t n;
	char (*name)[NAME_SIZE]; /* owned, as are the others; rising */
	uint32_t *version;       /* 0: not there */
	struct object_id tree;   /* of what is there */
	struct tree_summary below;
	struct world *w;
	struct cache *c;
};

/* Does name `i` begin the last leaf of a branch, or a branch of leaves, which may be the last? */
static inline bool ends_branch(size_t i)
{
	return i % ALWAYS_BRANCH == 0 || i % ALWAYS_BRANCH == ALWAYS_BRANCH - ALWAYS_LEAF;
}

static inline bool name_fits(const struct row *row, size_t i)
{
	const char *name = row->name[i];
	const uint64_t hash = object_name_hash(store_key(row->w->s), name, strlen(name));
	const uint64_t long_bits = hash >> 16 & 0x7fff;

	if (row->kind == NEVER)
		return long_bits > 4200;
	if (row->kind != ALWAYS && row->kind != STEADY)
		return true;
	if (row->kind == STEADY && !ends_branch(i))
		return long_bits < 3000;
	return long_bits < 3000 && (hash & 0x7f00) == 0;
}

static inline struct row row_new(struct world *w, enum row_kind kind, size_t n)
{
	struct row row = {
		.kind = kind,
		.n = n,
		.name = calloc(n, NAME_SIZE),
		.version = calloc(n, sizeof(*row.version)),
		.w = w,
		.c = new_cache(w->s),
	};

	CHECK(row.name && row.version);
	for (size_t i = 0; i < n; i++) {
		unsigned salt = 0;

		do
			snprintf(row.name[i], NAME_SIZE, "%06zx-%x", i, salt++);
		while (!name_fits(&row, i));
	}
	return row;
}

static inline void row_done(struct row *row)
{
	free(row->name);
	free(row->version);
	cache_free(row->c);
}

static inline struct tree_entry ordinary_entry(const char *name, uint32_t v)
{
	switch (v % 8) {
	case 0:
		return sample_directory(name);
	case 1:
		return sample_link(name);
	case 2:
		return sample_symlink(name, "../where");
	case 3:
		return sample_hole(name, v);
	default:
		return sample_file(name, v);
	}
}

static inline struct tree_entry entry_at(const struct row *row, size_t i, uint32_t v)
{
	static char target[TREE_TARGET_LEN_MAX + 1];
	struct tree_entry e;

	if (row->kind == ORDINARY)
		return ordinary_entry(row->name[i], v);
	if (target[0] == '\0')
		memset(target, 't', sizeof(target) - 1);
	e = sample_symlink(row->name[i], target);
	if (row->kind == LONG || row->kind == NEVER)
		e.target_len = 1 + v % TREE_TARGET_LEN_MAX;
	e.size = e.target_len;
	e.ino = v;
	return e;
}

/* Changes being collected; a name that was added before is passed over. */
struct edit_list {
	struct tree_change *change; /* owned, as is the other */
	struct tree_entry *entry;
	size_t n;
	size_t next; /* no name before this one can be added */
};

static inline struct edit_list list_new(const struct row *row)
{
	struct edit_list l = {
		.change = calloc(row->n, sizeof(*l.change)),
		.entry = calloc(row->n, sizeof(*l.entry)),
	};

	CHECK(l.change && l.entry);
	return l;
}

static inline void list_done(struct edit_list *l)
{
	free(l->change);
	free(l->entry);
}

/* Let name `i` be there in version `v`, or not if that is 0. */
static inline void change(struct row *row, struct edit_list *l, size_t i, uint32_t v)
{
	if (i < l->next || i >= row->n)
		return;
	l->next = i + 1;
	row->version[i] = v;
	l->entry[l->n] = entry_at(row, i, v);
	l->change[l->n] = (struct tree_change){
		.name = row->name[i],
		.name_len = strlen(row->name[i]),
		.entry = v > 0 ? &l->entry[l->n] : NULL,
	};
	l->n++;
}

static inline void edit_row(struct row *row, const struct edit_list *l)
{
	struct err err = { 0 };

	CHECK_OK(tree_edit(row->w->b, row->c, &row->tree, l->change, l->n, &row->tree, &row->below,
			   &err),
		 &err);
	world_commit(row->w);
}

/* What the edit gave is what all entries give, and everything of it is in the store. */
static inline void check_row(struct row *row)
{
	struct tree_summary below;
	struct object_id tree;

	counted.fresh = 0;
	for (size_t i = 0; i < row->n; i++)
		if (row->version[i] > 0) {
			const struct tree_entry e = entry_at(row, i, row->version[i]);

			world_add(row->w, &e, 1);
		}
	tree = world_finish(row->w, &below);
	CHECK(object_id_equal(&row->tree, &tree));
	CHECK_EQ(row->below.files, below.files);
	CHECK_EQ(row->below.bytes, below.bytes);
	CHECK_EQ(row->below.links, below.links);
	CHECK_EQ(counted.fresh, 0);
}

/* Let the first `n` names be there and no others. */
static inline void fill_row(struct row *row, size_t n)
{
	CLEANUP(list_done) struct edit_list l = list_new(row);

	for (size_t i = 0; i < row->n; i++)
		if ((row->version[i] > 0) != (i < n))
			change(row, &l, i, i < n);
	edit_row(row, &l);
}
