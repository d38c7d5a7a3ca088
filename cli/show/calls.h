/*
 * calls.h - calls that agents made of tools, as `snap mcp` wrote them down.
 */
#pragma once

#include "cli/cmd.h"

/* Print the newest `most` (0: all), newest first; of every project with `all`. */
NODISCARD int calls_print(struct invocation *inv, uint64_t most, bool all, struct err *err);
