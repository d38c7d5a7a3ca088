/*
 * rules.h - rules of the guard that people wrote themselves, besides the built-in ones.
 *
 * They come from the user's configuration (guard.yaml beside profiles/) and from the project's own
 * '.snap/guard.yaml', never from a clone's. A list of maps:
 *
 *   - name: keys
 *     paths: ["secrets/", "*.pem"]     # as in .gitignore
 *     why: anyone who has them can act for us
 *     level: hold                      # or warn, or pass; hold if nothing is said
 *
 * The first rule that matches a path counts, and these come before the built-in ones.
 */
#pragma once

#include "engine/api/engine.h"
#include "snapshot/text/guard.h"

struct engine_rules {
	struct guard_rule *list; /* owned, with its strings */
	size_t n;
};

void engine_rules_done(struct engine_rules *r);

/*
 * Those of the user, and of the project that holds the engine's directory, if one does.  -EINVAL with
 * file, line and column for what is none: then nothing is to be promoted.
 */
NODISCARD int engine_rules(struct engine *e, struct engine_rules *ret, struct err *err);
