/*
 * submodules-i.h - the submodules of a project whose repositories a clone has changed.
 *
 * Git keeps them in `modules` of the project's repository, and a clone has copies of them at the same
 * place in its `.git`.  Only the real repositories are read here: those of a clone are untrusted.
 */
#pragma once

#include "engine/find/engine-i.h"

struct submodules {
	struct submodule {
		char *git_dir; /* owned; the real repository */
		char
		    *in_clone; /* owned; the copy, from the top of the clone: ".git/modules/NAME" */
		char *place;   /* owned; the work tree, from the top of the project */
	} * list;              /* owned */
	size_t n;
};

void submodules_done(struct submodules *s);

/* `git_dir` is the project's repository, or the worktree's own directory in it. */
NODISCARD int submodules_changed(struct engine *e, const char *clone, const char *project,
				 const char *git_dir, struct submodules *ret, struct err *err);
