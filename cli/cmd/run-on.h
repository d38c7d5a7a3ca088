/*
 * run-on.h - `run --on`: the command runs on some worker of a queue.
 */
#pragma once

#include "cli/cmd.h"
#include "cli/cmd/run-args.h"

/* For inv->args, a struct run_args with `on`.  The exit code of the command, or a negative errno. */
NODISCARD int run_on(struct invocation *inv, const struct engine_run_limits *limits,
		     struct err *err);
