/*
 * tree-edit.h - a directory with some of its entries changed.
 *
 * Nodes that no change touches are taken over by id, unread. The result is the object that
 * tree_builder would give for all the entries: a directory does not show its history.
 */
#pragma once

#include "cowfs/store/cache.h"
#include "cowfs/store/tree.h"

struct tree_change {
	const char *name; /* not terminated */
	size_t name_len;
	const struct tree_entry *entry; /* of this name; NULL: the name goes, if it is there */
};

/*
 * `base` zero: an empty directory.  Else it has been committed, and what reaches it stays
 * until the batch has ended (batch.h).  `list` in strictly rising order of names.  A base
 * that is damaged where it must be read is -EBADMSG; a name that cannot stand in a
 * directory is -EINVAL.
 */
NODISCARD int tree_edit(struct batch *b, struct cache *c, const struct object_id *base,
			const struct tree_change *list, size_t n, struct object_id *ret_id,
			struct tree_summary *ret_below, struct err *err);
