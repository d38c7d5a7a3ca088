/*
 * acts.h - a command whose first word names an act: `watch start`, `image rm`.
 */
#pragma once

#include "cli/cmd.h"

struct act {
	const char *word;
	int (*run)(struct invocation *inv, struct err *err);
	bool alias; /* of the act before it; not listed */
};

/*
 * Run the act that the first word names; without a word, the first of the table.  A NULL word ends the
 * table.  An unknown word is -EINVAL with the list of acts; after that and after -ENOENT the command's
 * help is a hint, unless the act gave one of its own.
 */
NODISCARD int acts_run(struct invocation *inv, const struct act *acts, struct err *err);
