/*
 * taken.h - a snapshot that was just taken, told to the user.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/api/history.h"

/* Take a snapshot as `options` say, with a progress line, and print what came of it. */
NODISCARD int taken_run(struct invocation *inv, struct engine_take_options options,
			struct err *err);
