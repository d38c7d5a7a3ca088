/*
 * tree-walk.h - every entry below a directory, each directory before its content.
 */
#pragma once

#include "cowfs/store/tree.h"

#define TREE_WALK_PAST 1 /* answered for a directory: do not enter it */

/*
 * `path` begins with the walk's `top`, and `depth` counts the directories between the two.  All is
 * borrowed during the call.  A negative answer ends the walk.
 */
typedef int (*tree_walk_fn)(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
			    struct err *err);

/* -ELOOP, with a sentence, where directories are nested deeper than a path can name. */
NODISCARD int tree_walk(struct store *s, const struct object_id *tree, const char *top,
			tree_walk_fn fn, void *ctx, struct err *err);
