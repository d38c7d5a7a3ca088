/*
 * remote-log.h - the snapshots of a remote, as `remote log` and `log` print them.
 */
#pragma once

#include "cli/cmd.h"

/* `what` is REMOTE[:NAME]; `count` 0: no limit but one that is our own.  JSON is snap.remote/1. */
NODISCARD int remote_log_print(struct invocation *inv, const char *what, uint64_t count,
			       struct err *err);
