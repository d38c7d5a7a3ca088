/*
 * gitdir-i.h - the repository of a project whose `.git` is a file: of a worktree, of a submodule,
 * or of a repository with a separate git directory.
 *
 * Such a file names a directory outside of the project. A clone gets a copy of that directory in
 * place of the file (gitdir-graft-i.h); otherwise commits in the clone would reach the real
 * repository.
 */
#pragma once

#include "base/buf.h"
#include "engine/find/engine-i.h"
#include "snapshot/diff/changes.h"

struct gitdir {
	char *own;    /* owned; where `.git` leads to, without symlinks */
	char *common; /* owned; what holds objects and refs: `own`, or the directory above it */
};

void gitdir_done(struct gitdir *g);

/*
 * 1 if `.git` of the project is a file that leads to a repository; 0 if it is anything else.
 * -ENOENT, with a sentence, if it leads to no repository, and -EXDEV if to one that does not name
 * this project: otherwise such a file could show any repository to what runs in a clone.
 */
NODISCARD int gitdir_find(struct engine *e, const char *project, struct gitdir *ret,
			  struct err *err);

/* Git settings that hold for one place only. */
struct gitdir_settings {
	bool bare;
	char *worktree; /* owned; as it is written, or NULL */
};

/* Copy the settings to `out` without these, which are returned. */
NODISCARD int gitdir_read_settings(const char *text, size_t len, struct buf *out,
				   struct gitdir_settings *ret, struct err *err);

/* --- in trees --------------------------------------------------------------------------- */

/* 1 if `.git` is a file in it. */
NODISCARD int gitdir_is_file(struct store *s, const struct object_id *root, struct err *err);

/*
 * Where a file `.git` in a tree of the project leads, if that is not in the tree: *ret is owned, and
 * NULL if it does not, or is no such file.  A path that begins at "/" leads out of every clone.
 */
NODISCARD int gitdir_leads_out(struct store *s, const struct object_id *root, const char *project,
			       const char *path, char **ret, struct err *err);

/* What a file `.git` at that path names: *ret is owned, NULL if there is no such file. */
NODISCARD int gitdir_read_mark(struct store *s, const struct object_id *root, const char *path,
			       char **ret, struct err *err);

/*
 * Is the path a `.git`, or below one, that is a file in the project and leads elsewhere in a clone?  So
 * it is if one of the trees has a file and the other a directory, or if both have files of which one
 * leads out of its tree.  1: yes; the two trees may stand in either order.
 */
NODISCARD int gitdir_is_link(struct store *s, const struct object_id *a, const struct object_id *b,
			     const char *path);

/*
 * Can such a link be between two states?  Only if one is the project's own and the other a clone's whose
 * base has links in place of the project's files; whatever else differs there, somebody did.
 */
bool gitdir_has_links(struct store *s, const struct state *a, const struct state *b);

/* Has the first a repository where the second has the file that leads to one? */
NODISCARD int gitdir_is_grafted(struct store *s, const struct object_id *clone,
				const struct object_id *project, struct err *err);

/* Count from a clone's own base to its project, like changes_count(); a file `.git` in place of a repository is no change. */
NODISCARD int gitdir_count_changes(struct store *s, const struct object_id *base,
				   const struct object_id *project, struct changes *ret,
				   struct err *err);
