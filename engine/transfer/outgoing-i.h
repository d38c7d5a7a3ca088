/*
 * outgoing-i.h - the state that a push sends: a snapshot, and whole.
 */
#pragma once

#include "engine/api/remote.h"
#include "engine/ask/ask-hold-i.h"

/* Hold it; what still changes is kept as a snapshot first. */
NODISCARD int outgoing_choose(struct engine *e, const struct engine_push_options *options,
			      struct hold *ret, struct err *err);
