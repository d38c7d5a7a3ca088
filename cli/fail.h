/*
 * fail.h - a failure as the caller sees it: an exit code, a name, a sentence, hints.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"

/*
 * Report a failure: for people on stderr, and with --json as the one object of this
 * call on inv->out.  Returns the exit code.  `r` is a negative errno.
 */
int fail_report(struct invocation *inv, int r, const struct err *err);

/* The same for a sandbox that could not be set up. */
int fail_sandbox(struct invocation *inv, const struct err *err);

/* The same for what a signal ended, ^C if it is not known (0): the exit code is that of a shell. */
int fail_interrupted(struct invocation *inv, int sig, const struct err *err);

/* The same for what no errno says, by its exit code; `fill` says more in the object's "data". */
typedef void (*fail_data_fn)(struct json data, const void *ctx);
int fail_with(struct invocation *inv, enum cmd_status status, const struct err *err,
	      fail_data_fn fill, const void *ctx);

/* The exit code of a failure that is of no special kind. */
enum cmd_status fail_status(const struct invocation *inv);
