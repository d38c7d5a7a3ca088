/*
 * shape-fixture.h - for tests of trees that are built: what a whole tree is made of.
 */
#pragma once

#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cowfs/store/tree-node.h"
#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/tree-fixture.h"

/* Where trees are cut, as docs/reference/format.md has it. */
#define LEAF_MIN       128
#define LEAF_MAX       1024
#define BRANCH_MIN     64
#define BRANCH_MAX     512
#define LEAF_BYTES_MIN (24 << 10)
#define LEAF_BYTES_MAX (192 << 10)
#define LONG_ENTRY     256
#define LONG_CUT_BITS  0x7fffu

#define HEADER 16
#define RECORD 128

/* What a whole tree is made of, found by reading every node of it. */
struct shape {
	struct object_id *ids; /* owned, as are the others */
	uint32_t *leaves;      /* entries of each, in order */
	uint32_t *branches;    /* children of each */
	size_t n_ids, n_leaves, n_branches;
	size_t bytes_max; /* of the largest node */
	unsigned level;   /* of the top */
};

static inline void shape_done(struct shape *sh)
{
	free(sh->ids);
	free(sh->leaves);
	free(sh->branches);
}

static inline void note(uint32_t **list, size_t *n, uint32_t value)
{
	*list = reallocarray(*list, *n + 1, sizeof(**list));
	CHECK(*list);
	(*list)[(*n)++] = value;
}

static inline void sum_up(struct tree_summary *sum, const struct tree_summary *more)
{
	sum->files += more->files;
	sum->bytes += more->bytes;
	sum->links = sum->links || more->links;
}

static inline struct tree_summary summary_of(const struct tree_entry *e)
{
	if (e->form == TREE_DIR)
		return e->below;
	return (struct tree_summary){ 1, e->size, e->form == TREE_LINK };
}

/* Every node is sound, and is what the record above it says. */
static inline void walk(struct store *s, const struct object_id *id, unsigned level,
			const struct tree_child *want, struct shape *sh)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct tree_child sum = { 0 }, c;
	struct tree_summary below;
	struct tree_node node;
	struct tree_entry e;
	struct err err = { 0 };

	CHECK_OK(store_get(s, OBJECT_TREE, id, &bytes, &err), &err);
	CHECK_OK(tree_node_open(bytes.data, bytes.len, &node, &err), &err);
	CHECK_OK(tree_node_verify(&node, &err), &err);
	if (want)
		CHECK_EQ(node.level, level);
	else
		sh->level = node.level;
	sh->ids = reallocarray(sh->ids, sh->n_ids + 1, sizeof(*id));
	CHECK(sh->ids);
	sh->ids[sh->n_ids++] = *id;
	if (bytes.len > sh->bytes_max)
		sh->bytes_max = bytes.len;
	if (node.level == 0)
		note(&sh->leaves, &sh->n_leaves, node.n);
	else
		note(&sh->branches, &sh->n_branches, node.n);

	for (uint32_t i = 0; i < node.n; i++) {
		if (node.level == 0) {
			CHECK_OK(tree_node_entry(&node, i, &e, &err), &err);
			c = (struct tree_child){ .name = e.name, .name_len = e.name_len };
			c.entries = 1;
			below = summary_of(&e);
		} else {
			CHECK_OK(tree_node_child(&node, i, &c, &err), &err);
			walk(s, &c.id, node.level - 1, &c, sh);
			below = c.below;
		}
		if (want && i == 0)
			CHECK_MEM(c.name, c.name_len, want->name, want->name_len);
		sum.entries += c.entries;
		sum_up(&sum.below, &below);
	}
	if (want) {
		CHECK_EQ(sum.entries, want->entries);
		CHECK_EQ(sum.below.files, want->below.files);
		CHECK_EQ(sum.below.bytes, want->below.bytes);
		CHECK_EQ(sum.below.links, want->below.links);
	}
}

static inline struct shape shape_of(struct store *s, const struct object_id *id)
{
	struct shape sh = { 0 };

	walk(s, id, 0, NULL, &sh);
	CHECK(sh.bytes_max <= LEAF_BYTES_MAX);
	return sh;
}

static inline int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct object_id));
}

/* How many nodes of `now` are none of `before`. */
static inline size_t new_nodes(struct shape *before, const struct shape *now)
{
	size_t n = 0;

	qsort(before->ids, before->n_ids, sizeof(*before->ids), compare_ids);
	for (size_t i = 0; i < now->n_ids; i++)
		n += !bsearch(&now->ids[i], before->ids, before->n_ids, sizeof(*before->ids),
			      compare_ids);
	return n;
}

static inline struct shape finish_shape(struct world *w)
{
	const struct object_id tree = world_finish(w, NULL);

	world_commit(w);
	return shape_of(w->s, &tree);
}
