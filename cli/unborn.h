/*
 * unborn.h - what is said of a project of which nothing was kept yet.
 */
#pragma once

#include "cli/cmd.h"

/*
 * `r`, unless it says that there is no project here (-ENXIO): then *ret (which the caller owns) is what would
 * be one, and 0 for JSON, whose lists are then empty, or 1 when `text` was said to people.
 */
NODISCARD int unborn_or(struct invocation *inv, int r, const char *text, char **ret,
			struct err *err);
