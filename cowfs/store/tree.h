/*
 * tree.h - an immutable directory: sorted entries with all that stat(2) shows.
 *
 * A small directory is one object. A large one is cut into nodes at places that depend only on the
 * entry there. So the same directory always gives the same objects, whatever its history, and one
 * changed entry costs one node per level. Two directories are equal exactly if their ids are.
 *
 * A file with several names (hard links) has one entry of form TREE_LINK per name and its
 * attributes once, in the links tree of the root (root.h).
 *
 * On-disk: docs/reference/format.md, "Tree".
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/store.h"
#include "cowfs/store/tree-entry.h"

/* Takes entries in strictly rising order of names (memcmp) and puts nodes as they fill. */
struct tree_builder;

NODISCARD int tree_builder_new(struct batch *b, struct tree_builder **ret, struct err *err);
void tree_builder_free(struct tree_builder *t); /* NULL is fine */
DEFINE_CLEANUP(struct tree_builder *, tree_builder_free)

/* What it builds is looked at next: into the cache that is shared with it, as long as there is room. */
void tree_builder_offer(struct tree_builder *t);

NODISCARD int tree_builder_add(struct tree_builder *t, const struct tree_entry *e, struct err *err);

/* Give the tree of all that was added; the builder is then as new and takes the next directory. */
NODISCARD int tree_builder_finish(struct tree_builder *t, struct object_id *ret_id,
				  struct tree_summary *ret_below, struct err *err);

/*
 * Find one name, touching only the records on the way to it.  *ret borrows from
 * `hold`, which is replaced.  -ENOENT (without a sentence) if the name is not there.
 */
NODISCARD int tree_lookup(struct store *s, const struct object_id *tree, const char *name,
			  size_t name_len, struct tree_entry *ret, struct buf *hold,
			  struct err *err);

/* Walks one directory in the order of names. */
struct tree_iter;

NODISCARD int tree_iter_new(struct store *s, const struct object_id *tree, struct tree_iter **ret,
			    struct err *err);
void tree_iter_free(struct tree_iter *it); /* NULL is fine */
DEFINE_CLEANUP(struct tree_iter *, tree_iter_free)

/*
 * Pass over what comes next in both and is the same to the byte: entries without decoding
 * them, and whole nodes of large directories unread.
 */
void tree_iter_skip_same(struct tree_iter *a, struct tree_iter *b);

/* 1 and the next entry, borrowed until the next call; 0 at the end. */
NODISCARD int tree_iter_next(struct tree_iter *it, struct tree_entry *ret, struct err *err);
