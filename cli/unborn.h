/*
 * unborn.h - the words for a project of which nothing is stored yet, and for an empty list.
 */
#pragma once

#include "cli/cmd.h"

/*
 * `r`, unless it says that there is no project here (-ENXIO): then *ret (which the caller owns) is what would
 * be one, and 0 for JSON, whose lists are then empty, or 1 when `text` was said to people.
 */
NODISCARD int unborn_or(struct invocation *inv, int r, const char *text, char **ret,
			struct err *err);

/*
 * A list is empty: says so on stderr, with a command to type next.  Only on a terminal, where a
 * person waits; a program reads an empty list.
 */
void unborn_empty(const struct invocation *inv, const char *what, const char *next);
