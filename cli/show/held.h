/*
 * held.h - prints the paths that the guard holds, for `promote`, `undo` and `rollback`.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/api/promote.h"

/* Why the guard holds what its rule of this name holds. */
const char *held_why(const char *rule);

/* Is one of them held by a rule for the files of machines (`promote --rules --root`)? */
bool held_by_system(const struct engine_rolled_path *list, size_t n);

/*
 * `act`, then the first path and how many are held besides.  Those below it count apart: whoever
 * allows the first allows them too.  There is at least one.
 */
void held_say(const char *act, const struct engine_rolled_path *list, size_t n, struct err *err);

/* Each on a line of its own. */
void held_print(const struct invocation *inv, FILE *out, const struct engine_rolled_path *list,
		size_t n);
