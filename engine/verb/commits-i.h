/*
 * commits-i.h - bring commits from a clone to the project's repository and to those of its submodules.
 *
 * The clone's .git is untrusted: whatever ran there may have written it, and its configuration can
 * name programs.  So the only git that reads it runs in a sandbox, on a throw-away clone, and hands
 * out a bundle.  The project's git checks every object of the bundle before anything lands, and then
 * fetches it into branches under the clone's name.  It runs no hook, and touches neither index nor
 * work tree.
 */
#pragma once

#include "engine/api/promote.h"
#include "engine/verb/git-run-i.h"

struct commits {
	struct bundle {
		char *git_dir; /* owned; the repository that it is for */
		int fd;        /* owned */
		char detached
		    [GIT_RUN_DETACHED_SIZE]; /* the branch that its HEAD becomes; "": it has none */
	} * list;                            /* owned; none: there is nothing new */
	size_t n;
	struct engine_commits told;
};

void commits_done(struct commits *c);

/* Changes nothing.  -ECANCELED with a sentence if there is no suitable repository. */
NODISCARD int commits_bundle(struct engine *e, const char *clone, struct commits *ret,
			     struct err *err);

NODISCARD int commits_fetch(const char *clone, const struct commits *c, struct err *err);
