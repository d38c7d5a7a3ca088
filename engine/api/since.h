/*
 * since.h - what changed in a clone since a token was given.
 *
 * For programs that keep a list of all files, as git does (`core.fsmonitor`), and want to look at
 * few of them. The cost depends on the changes, not on the size of the tree. The answer may name
 * unchanged paths, but leaves out no change: every change that returned before the question is in
 * it.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strlist.h"

struct engine;

#define ENGINE_SINCE_MAX 50000 /* paths; where more changed, everything may have */

struct engine_since {
	char *token; /* owned; of the state that the answer is up to */
	bool all;    /* everything may have changed: nobody knows what, or it is too much */
	struct strlist
	    paths; /* below the engine's directory and from there, in no order; without its `.git` */
};
void engine_since_done(struct engine_since *s);

/*
 * In the clone that holds the engine's directory, below that.  A token that means nothing any more
 * (of another clone, from before a rollback, a rebase, a restart) is answered with `all`.  -EINVAL if
 * the directory is in no clone.
 */
NODISCARD int engine_since(struct engine *e, const char *token, struct engine_since *ret,
			   struct err *err);

/*
 * Set the clone at `path` up so that git there asks this (core.fsmonitor, and core.untrackedCache,
 * without which git still reads each directory).  Nothing else hears of it: the repository's own
 * configuration in the clone says so.  -ECANCELED if there is no repository at its top.
 */
NODISCARD int engine_since_setup(struct engine *e, const char *path, struct err *err);
