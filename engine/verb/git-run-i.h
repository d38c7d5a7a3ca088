/*
 * git-run-i.h - git, run in the project's repository with nothing in it that could run something else.
 *
 * No hook, no maintenance, no prompt, no variable of ours that leads it elsewhere; the repository is
 * named, so none around it is looked for.  What it says goes to nobody but an error's sentence.
 */
#pragma once

#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* Can branches have the name of this clone in theirs?  -ECANCELED with a sentence. */
NODISCARD int git_run_check_name(const char *project, const char *clone, struct err *err);

/* What all refs lead to, a line each, into a file that is then read from its beginning. */
NODISCARD int git_run_list_tips(const char *project, int fd, struct err *err);

/*
 * Is each object of a pack, which begins at `at`, one that git would have, and is all there that it
 * leads to?  Looked at beside the repository, which gets none of it.  git 2.39 does not ask that of a
 * bundle that it fetches, whatever fetch.fsckObjects says.
 */
NODISCARD int git_run_check_objects(const char *project, const char *objects, int fd, off_t at,
				    struct err *err);

/* All branches of a bundle that was checked, into those of the clone's name. */
NODISCARD int git_run_fetch(const char *project, const char *clone, int bundle, struct err *err);
