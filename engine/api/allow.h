/*
 * allow.h - hosts that the next runs on a clone may reach, besides those of their own options.
 *
 * A person allows them; nothing that runs on the clone can. They stay with the clone until they are
 * taken back or the clone is removed; a clone of the clone does not have them.
 */
#pragma once

#include "base/strlist.h"
#include "engine/api/engine.h"

struct engine_allowed {
	char *clone;          /* owned */
	struct strlist rules; /* as --net takes them, each once, in the order in which they came */
};

void engine_allowed_done(struct engine_allowed *a);

/* What is allowed; `clone` NULL: the one that holds the engine's directory. */
NODISCARD int engine_allowed(struct engine *e, const char *clone, struct engine_allowed *ret,
			     struct err *err);

/*
 * Allow more, or (`remove`) take these back; *ret is what is allowed then.  -EINVAL with a sentence for
 * what is no rule, -ENOENT for one that is to be taken back and is not there.
 */
NODISCARD int engine_allow(struct engine *e, const char *clone, const struct strlist *rules,
			   bool remove, struct engine_allowed *ret, struct err *err);
