/*
 * taken.h - reports a snapshot that was just taken.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/api/history.h"

/*
 * Take a snapshot as `options` say, with a progress line, and print what came of it.  With `wait` a lazy one
 * is complete when this returns.
 */
NODISCARD int taken_run(struct invocation *inv, struct engine_take_options options, bool wait,
			struct err *err);
