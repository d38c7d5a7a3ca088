/*
 * recipe.h - the node of a large file: where its blocks are.
 *
 * A file is cut into blocks of CHUNK_SIZE_MAX bytes.  A node of level 0 lists the
 * chunks of up to RECIPE_FANOUT blocks, a node of level n the nodes of level n-1.
 * A zero id is a hole, of one block or of all that a node would cover.  So one
 * changed block costs one chunk and one small node per level, and a sparse
 * terabyte costs a handful of nodes.
 *
 * Pure: encoding and arithmetic.  On-disk: docs/reference/format.md, "Recipe".
 */
#pragma once

#include "cowfs/store/object.h"

#define RECIPE_FANOUT    512
#define RECIPE_LEVEL_MAX 5 /* covers any off_t */

struct recipe_node {
	unsigned level;
	unsigned n; /* slots in use; the last of them is no hole */
	struct object_id id[RECIPE_FANOUT];
};

/* The level of the top node of a file this long; files up to one block have no recipe. */
unsigned recipe_level(uint64_t size);

/* Bytes of file that one slot of a node of this level covers. */
uint64_t recipe_slot_span(unsigned level);

/* Where the byte at `off` is found: in which node of a level, and in which slot of that node. */
uint64_t recipe_node_number(unsigned level, uint64_t off);
unsigned recipe_slot_number(unsigned level, uint64_t off);

/* `out` is replaced. */
NODISCARD int recipe_encode(const struct recipe_node *node, struct buf *out);
/* -EBADMSG with a sentence unless the bytes are exactly what recipe_encode() writes. */
NODISCARD int recipe_decode(const void *data, size_t len, struct recipe_node *ret, struct err *err);

/* A node read where it lies, without a copy of its ids. */
struct recipe_view {
	unsigned level;
	unsigned n;
	const uint8_t *ids; /* borrowed from the bytes it was made of */
};

/* As recipe_decode(). */
NODISCARD int recipe_view(const void *data, size_t len, struct recipe_view *ret, struct err *err);

static inline struct object_id recipe_view_id(const struct recipe_view *v, unsigned slot)
{
	struct object_id id = { { 0 } };

	if (slot < v->n)
		memcpy(id.b, v->ids + (size_t)slot * OBJECT_ID_SIZE, OBJECT_ID_SIZE);
	return id;
}
