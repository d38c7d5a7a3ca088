/*
 * remote-gc.h - `remote gc`: does it, and prints what went.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/api/remote.h"

#define REMOTE_GC_GRACE_MS ((uint64_t)24 * 3600 * 1000)

NODISCARD int remote_gc_print(struct invocation *inv, const struct engine_remote_gc_options *o,
			      struct err *err);
