/*
 * commits-i.h - bring commits from a clone to the project's repository.
 *
 * The clone's .git is untrusted: whatever ran there may have written it, and its configuration can
 * name programs.  So the only git that reads it runs in a sandbox, on a throw-away clone, and hands
 * out a bundle.  The project's git checks every object of the bundle before anything lands, and then
 * fetches it into branches under the clone's name.  It runs no hook, and touches neither index nor
 * work tree.
 */
#pragma once

#include "engine/api/promote.h"

struct commits {
	int fd; /* owned; the bundle; -1: there is nothing new */
	struct engine_commits told;
};

#define COMMITS_INIT ((struct commits){ .fd = -1 })

void commits_done(struct commits *c);

/* Changes nothing.  -ECANCELED with a sentence if there is no suitable repository. */
NODISCARD int commits_bundle(struct engine *e, const char *clone, struct commits *ret,
			     struct err *err);

NODISCARD int commits_fetch(const char *project, const char *clone, const struct commits *c,
			    struct err *err);
