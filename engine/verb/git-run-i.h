/*
 * git-run-i.h - run git in a repository of the project so that git runs nothing else.
 *
 * No hook, no maintenance, no prompt, no variable that leads it elsewhere. The repository is named,
 * so git looks for no other. Its output is only used in error messages.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* Can the clone's name be part of a branch name?  -ECANCELED with a sentence if not. */
NODISCARD int git_run_check_name(const char *git_dir, const char *clone, struct err *err);

/* Set a variable of the repository's own configuration. */
NODISCARD int git_run_configure(const char *git_dir, const char *key, const char *value,
				struct err *err);

/* Write the commits of all refs to the file, one per line, and rewind it. */
NODISCARD int git_run_list_tips(const char *git_dir, int fd, struct err *err);

/*
 * Check that each object of the pack, which begins at `at`, is valid and that nothing it refers to is
 * missing.  This happens beside the repository, which gets none of it.  git 2.39 does not check this
 * for a bundle that it fetches, whatever fetch.fsckObjects says.
 */
NODISCARD int git_run_check_objects(const char *git_dir, const char *objects, int fd, off_t at,
				    struct err *err);

/* The branch that a HEAD without one becomes; with a number behind it if there is such a branch. */
#define GIT_RUN_DETACHED      "detached"
#define GIT_RUN_DETACHED_SIZE 24

/*
 * Fetch all branches of a checked bundle into branches under the clone's name, and HEAD into the branch
 * `detached` there unless that is "".
 */
NODISCARD int git_run_fetch(const char *git_dir, const char *clone, const char *detached,
			    int bundle, struct err *err);
