/*
 * hooks.h - our hooks in the file where a client keeps its own: which events, in which form.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "cli/agents/agents.h"

bool hooks_known(const struct agent *a); /* the client has hooks that we can use */
bool hooks_there(const struct agent *a); /* and ours are in its file */

/*
 * Add our hooks, or take them out (`add` false); others' stay.  `store` is passed on to the hook; NULL:
 * it is the usual one.  As client_change(), and 1 where the client has no hooks and none are to be added.
 */
NODISCARD int hooks_change(const struct agent *a, bool add, const char *store, bool dry_run,
			   bool no_backup, char **ret_file, char **ret_backup, struct err *err);
