/*
 * gitdir-link-i.h - make files `.git` below the top of a tree lead into that tree.
 *
 * Worktrees inside a project, submodules of a worktree and submodules of a submodule have such a file.
 * It names a directory by its full path, or one outside of the project, so git in a clone would work
 * on the real repository.  If a clone has a copy of that directory, the file is changed to name it.
 */
#pragma once

#include "cowfs/store/root.h"
#include "engine/find/gitdir-i.h"

struct gitdir_link {
	char *path;  /* owned; of the file, from the top */
	char *value; /* owned; the path that it is to hold, from its own directory */
};

struct gitdir_links {
	struct gitdir_link *list; /* owned */
	size_t n;
};

void gitdir_links_done(struct gitdir_links *l);

/*
 * Where the copy of that directory is in a clone, from the top: *ret is owned, NULL if there is none.
 * `git` is the repository that the clone gets in place of its own file `.git` (gitdir-graft-i.h), with
 * NULLs if it gets none.
 */
NODISCARD int gitdir_find_copy(const char *project, const struct gitdir *git, const char *leads_to,
			       char **ret, struct err *err);

/* The file at `path` is to name what is at `to`, both from the top. */
NODISCARD int gitdir_links_add(struct gitdir_links *l, const char *path, const char *to,
			       struct err *err);

/*
 * What is to be changed in the project's tree so that it fits a clone with that base: files that lead
 * out are to be as they are in the base, and new ones are to lead to where a copy would be.
 */
NODISCARD int gitdir_links_carry(struct engine *e, const char *path, const struct object_id *base,
				 const struct object_id *project, struct gitdir_links *ret,
				 struct err *err);

/* The root is committed, and stays until the batch has ended.  Other kinds of files are left alone. */
NODISCARD int gitdir_link(struct batch *b, const struct object_id *root,
			  const struct gitdir_links *links, struct object_id *ret, struct err *err);
