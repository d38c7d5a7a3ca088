/*
 * clone-git-i.h - what git needs in a new clone so that commits stay in it.
 *
 * If `.git` of the project is a file, the clone gets a copy of the repository in its place
 * (gitdir-graft-i.h).  Files `.git` below the top that lead out of the clone are made to lead to their
 * copies in it (gitdir-link-i.h), or reported if there are none.
 */
#pragma once

#include "engine/act/gitdir-link-i.h"
#include "engine/api/clone.h"
#include "engine/host/task-i.h"

struct clone_git {
	struct store *store;
	struct gitdir real;      /* the project's repository, if its `.git` is a file */
	struct object_id common; /* the root of a capture of it; zero: `.git` is no file */
	struct object_id
	    linked;       /* the project's tree with files that lead into it; pinned; or zero */
	char **worktrees; /* owned; names of worktrees whose directories are needed, too */
	size_t n_worktrees;
};

void clone_git_done(struct clone_git *g);

/* `start` is what the clone is to show.  `told` gets git_dir and links, and keeps the strays that remain. */
NODISCARD int clone_git_prepare(struct task *task, const struct snapshot *start,
				const char *project, const struct engine_clone_options *options,
				struct engine_clones *told, struct clone_git *ret, struct err *err);

bool clone_git_changes(
    const struct clone_git *g); /* is the clone to show another tree than `start`? */

NODISCARD int clone_git_put(struct batch *b, const struct clone_git *g,
			    const struct object_id *start, struct object_id *ret,
			    struct root *ret_root, struct err *err);
