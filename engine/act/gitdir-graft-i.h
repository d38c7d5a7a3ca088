/*
 * gitdir-graft-i.h - a tree whose `.git` is a file gets a repository of its own in place of it.
 *
 * What is put there was captured from the real repository: the directory that the file leads to,
 * and, of a worktree, what the repository's other worktrees share with it.  Objects come along, so
 * nothing that is done to the real repository later takes something away from a clone.
 */
#pragma once

#include "cowfs/store/root.h"

struct gitdir_graft {
	struct object_id tree; /* root of the project, as it was captured */
	struct object_id
	    common;      /* root of the directory that holds objects and refs, apart (capture.h) */
	const char *own; /* the worktree's directory, from the top of `common`; "": that itself */
};

/* Both roots are committed, and stay until the batch has ended. */
NODISCARD int gitdir_graft(struct batch *b, const struct gitdir_graft *g, struct object_id *ret,
			   struct root *ret_root, struct err *err);

/* `to` with the repository of `from` in place of its file; the same is said of both. */
NODISCARD int gitdir_carry(struct batch *b, const struct object_id *from,
			   const struct object_id *to, struct object_id *ret, struct err *err);
