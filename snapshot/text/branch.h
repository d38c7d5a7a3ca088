/*
 * branch.h - a branch of a git repository: its tree as a directory, and commits on top of it.
 *
 * It uses libgit2: no hook, filter or program runs, and neither an index nor a work tree of the
 * repository is read or written. A commit is made first, and no ref leads to it; branch_advance()
 * then moves the branch to it in one step, if nobody else has moved it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

#define BRANCH_COMMIT_SIZE 41

struct branch;

/* -ENOENT with a sentence if there is no such repository or branch. */
NODISCARD int branch_open(const char *repository, const char *name, struct branch **ret,
			  struct err *err);
void branch_close(struct branch *b);
void branch_close_p(struct branch **b);

/* A work tree has it checked out, so moving it would make that look edited. */
bool branch_is_checked_out(const struct branch *b);

/* Fill an empty directory with the files of the tip, byte for byte as git stores them. */
NODISCARD int branch_export(const struct branch *b, int dir, struct err *err);

/*
 * A commit on top of the tip with these paths as they are in the directory; those that the repository
 * ignores and does not track stay out.  1, or 0 if that changes nothing.
 */
NODISCARD int branch_commit(const struct branch *b, const char *dir, char *const *paths, size_t n,
			    const char *message, char ret[BRANCH_COMMIT_SIZE], struct err *err);

/* A commit on top of the tip that takes another one back.  1; 0: later commits conflict with that. */
NODISCARD int branch_revert(const struct branch *b, const char *commit, const char *message,
			    char ret[BRANCH_COMMIT_SIZE], struct err *err);

/* -ESTALE if the branch is not at our tip any more; -EBUSY if another process has git's lock of it. */
NODISCARD int branch_advance(const struct branch *b, const char *commit, const char *why,
			     struct err *err);

/*
 * A process of ours that died on the way to this commit may have left git's lock of the branch, which then
 * names the commit: remove that.  No other lock is touched.
 */
NODISCARD int branch_unlock(const struct branch *b, const char *commit, struct err *err);

/* 1 if the commit is the tip or comes before it; 0 if not, or if there is no such commit. */
NODISCARD int branch_contains(const struct branch *b, const char *commit, struct err *err);
