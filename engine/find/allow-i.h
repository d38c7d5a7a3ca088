/*
 * allow-i.h - the hosts that the runs of a clone may reach, in the catalog.
 */
#pragma once

#include "engine/api/allow.h"
#include "engine/find/engine-i.h"

/* Nothing if there is no record, or one of an earlier clone of that name. */
NODISCARD int allowed_load(struct store *s, const struct clone *clone, struct engine_allowed *ret,
			   struct err *err);

/* Between two rules, as in --net; owned by the caller, NULL: no memory. */
char *allowed_join(const struct strlist *rules);
