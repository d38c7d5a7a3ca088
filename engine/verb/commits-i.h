/*
 * commits-i.h - commits made in a clone, on their way to the project's repository.
 *
 * What the clone's git folder says is whatever ran in the clone wrote there: its configuration can name
 * programs.  So the only git that reads it runs in a sandbox, on a throw-away clone, and hands out a
 * bundle.  The project's own git checks every object of that before anything lands, and then
 * takes it into branches of the clone's name; no hook is run, and index and work tree are not
 * touched.
 */
#pragma once

#include "engine/api/promote.h"

struct commits {
	int fd; /* owned; the bundle; -1: there is nothing new */
	struct engine_commits told;
};

#define COMMITS_INIT ((struct commits){ .fd = -1 })

void commits_done(struct commits *c);

/* Nothing is changed.  -ECANCELED with a sentence where there is no repository that could be used so. */
NODISCARD int commits_bundle(struct engine *e, const char *clone, struct commits *ret,
			     struct err *err);

NODISCARD int commits_fetch(const char *project, const char *clone, const struct commits *c,
			    struct err *err);
