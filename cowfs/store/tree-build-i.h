/*
 * tree-build-i.h - the builder of trees, as their editor uses it: it takes over nodes by id.
 */
#pragma once

#include "cowfs/store/cache.h"
#include "cowfs/store/tree-node.h"
#include "cowfs/store/tree.h"

/* A builder that may also take over nodes of an older tree, which it reads through `c`. */
NODISCARD int tree_builder_new_over(struct batch *b, struct cache *c, struct tree_builder **ret,
				    struct err *err);

/* Read a node of the older tree, every rule of the format checked.  It borrows from *ret_hold. */
NODISCARD int tree_builder_read(struct tree_builder *t, const struct object_id *id,
				const struct cached **ret_hold, struct tree_node *ret,
				struct err *err);

/*
 * Add all that is in a node of the older tree, unread, if a node of its level begins here:
 * 1, or 0 if none does; then all that is in it must be added in parts.  What comes next
 * must begin with the entry that came next in the older tree, or be nothing if nothing did.
 */
NODISCARD int tree_builder_take(struct tree_builder *t, unsigned level, const struct tree_child *c,
				struct err *err);

/*
 * Add the entries of a leaf of the older tree from `from` up to `end`, each as it is: the same as
 * decoding it and tree_builder_add(), without the work.  The leaf is one that tree_builder_read() gave.
 */
NODISCARD int tree_builder_add_records(struct tree_builder *t, const struct tree_node *leaf,
				       uint32_t from, uint32_t end, struct err *err);
