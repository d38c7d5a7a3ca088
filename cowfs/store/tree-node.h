/*
 * tree-node.h - one node of a tree as bytes: a leaf of entries or a branch of nodes.
 *
 * Records have one size and are in the order of their names; names and symlink targets are in a
 * heap after them. So a binary search finds a name and decodes nothing else. Every access is
 * bounded by the bytes at hand, whatever they hold.
 *
 * Pure. On-disk: docs/reference/format.md, "Tree".
 */
#pragma once

#include "cowfs/store/tree-entry.h"

#define TREE_LEVEL_MAX 8 /* 0 is a leaf */

/* One record of a branch: a node of the level below. */
struct tree_child {
	const char *name; /* the first name in it */
	size_t name_len;
	struct object_id id;
	uint64_t entries; /* names in all leaves below it */
	struct tree_summary below;
};

struct tree_node {
	const uint8_t *data; /* borrowed */
	size_t len;
	unsigned level;
	uint32_t n;
};

/* Look at the header and the overall sizes.  -EBADMSG with a sentence. */
NODISCARD int tree_node_open(const void *data, size_t len, struct tree_node *ret, struct err *err);

/* Every rule of the format, for every record: what the builder wrote and nothing else. */
NODISCARD int tree_node_verify(const struct tree_node *node, struct err *err);

/* Record i of a leaf, or of a branch; what is returned borrows from the node. */
NODISCARD int tree_node_entry(const struct tree_node *node, uint32_t i, struct tree_entry *ret,
			      struct err *err);
NODISCARD int tree_node_child(const struct tree_node *node, uint32_t i, struct tree_child *ret,
			      struct err *err);

/* Add what one record stands for to the sums of those before it; a sum never exceeds UINT64_MAX. */
void tree_node_count(uint64_t *entries, struct tree_summary *below, uint64_t more_entries,
		     const struct tree_summary *more_below);

/* An entry as a leaf has it, undecoded but for what a builder asks. */
struct tree_record {
	const uint8_t *bytes; /* like the name, borrowed from the node */
	const char *name;     /* a target stands behind it */
	size_t name_len;
	size_t size;                /* what it adds to a node */
	struct tree_summary counts; /* what it adds to the summary of its directory */
};

/* Record i of a leaf; whether it is canonical is known only if the node was verified. */
NODISCARD int tree_node_record(const struct tree_node *node, uint32_t i, struct tree_record *ret,
			       struct err *err);

/* Does a record of one node say the same, to the byte, as one of the other? */
bool tree_node_same(const struct tree_node *a, uint32_t i, const struct tree_node *b, uint32_t k);

/*
 * The first record whose name is not below `name`; n if there is none.  *ret_equal
 * says whether it is the name itself.
 */
NODISCARD int tree_node_find(const struct tree_node *node, const char *name, size_t name_len,
			     uint32_t *ret_i, bool *ret_equal, struct err *err);

/* A node being written. */
struct tree_node_writer {
	unsigned level;
	uint32_t n;
	struct buf records;
	struct buf heap;
};

void tree_node_writer_done(struct tree_node_writer *w);
NODISCARD int tree_node_add_entry(struct tree_node_writer *w, const struct tree_entry *e);
NODISCARD int tree_node_add_record(struct tree_node_writer *w, const struct tree_record *r);
NODISCARD int tree_node_add_child(struct tree_node_writer *w, const struct tree_child *c);
size_t tree_node_entry_size(const struct tree_entry *e); /* what it adds to the node */
size_t tree_node_writer_size(const struct tree_node_writer *w);
NODISCARD int tree_node_finish(struct tree_node_writer *w,
			       struct buf *out); /* appends; `w` is then empty */
