/*
 * listing-i.h - private to the core: the names of a directory in the order of their cursors.
 */
#pragma once

#include "cowfs/store/cache.h"
#include "cowfs/store/tree-node.h"

#define CURSOR_DOT    1 /* behind "." */
#define CURSOR_DOTDOT 2
#define CURSOR_FIRST  3 /* the lowest of a name */

struct item {
	uint64_t cursor;
	uint64_t ino;
	uint16_t type; /* as in st_mode */
	bool promised; /* its bytes are, as far as it was stored */
	uint32_t name; /* where it begins in `names` */
};

struct listing {
	struct object_id tree; /* what the items were read of */
	uint64_t version;      /* of the directory; 0: only what is stored */
	struct item *items;
	size_t n, cap;
	struct buf names; /* each with its NUL */
};

void listing_free(struct listing *li); /* NULL is fine */
DEFINE_CLEANUP(struct listing *, listing_free)

/* A name more; the order is not kept. */
NODISCARD int listing_add(struct listing *li, const struct object_key *key, const char *name,
			  size_t len, uint64_t ino, uint32_t mode);
NODISCARD int listing_add_leaf(struct listing *li, const struct object_key *key,
			       const struct tree_node *node, struct err *err);
void listing_sort(struct listing *li);

/* All names of a stored tree, from the cache and the store; without locks. */
NODISCARD int listing_load(struct cache *c, const struct object_id *tree, struct listing **ret,
			   struct err *err);

static inline const char *item_name(const struct listing *li, const struct item *it)
{
	return (const char *)li->names.data + it->name;
}
