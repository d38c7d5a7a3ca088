/*
 * gitdir-graft-i.h - put a repository into a tree in place of its file `.git`.
 *
 * The repository is a capture of the real one: the directory that the file leads to and, for a
 * worktree, what all worktrees of the repository share.  It includes the objects, so that later
 * changes of the real repository take nothing away from a clone.
 */
#pragma once

#include "cowfs/store/root.h"

struct gitdir_graft {
	struct object_id tree; /* root of the project, as it was captured */
	struct object_id
	    common;      /* root of the directory that holds objects and refs, apart (capture.h) */
	const char *own; /* the worktree's directory, from the top of `common`; "": that itself */
	const char *const *worktrees; /* other worktrees whose directories are needed, by name */
	size_t n_worktrees;
};

/* Both roots are committed, and stay until the batch has ended. */
NODISCARD int gitdir_graft(struct batch *b, const struct gitdir_graft *g, struct object_id *ret,
			   struct root *ret_root, struct err *err);

/* The tree `to` with the repository of `from` in place of its file.  The same holds for both roots. */
NODISCARD int gitdir_carry(struct batch *b, const struct object_id *from,
			   const struct object_id *to, struct object_id *ret, struct err *err);
