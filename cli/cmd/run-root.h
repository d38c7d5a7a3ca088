/*
 * run-root.h - the root of a run that has one of its own.
 */
#pragma once

#include "cli/cmd/run-args.h"

/* A profile with `root: true` stands for --root: set that in inv->args, a struct run_args. */
NODISCARD int run_root_read_profile(struct invocation *inv, struct err *err);

/* With --root: the clone, directory or state that the line names, or this machine; and who the command is. */
NODISCARD int run_root_choose(const struct invocation *inv, struct engine_run_options *o,
			      struct err *err);
