/*
 * skill.h - a file SKILL.md for clients that read skills: when to use snap, and how.
 */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "cli/agents/agents.h"

/*
 * Write ours, or remove it (`add` false), with the folder if nothing else is in it.  1 if nothing had to be
 * changed.  A file that somebody changed is replaced, and kept beside it; it is not removed.
 */
NODISCARD int skill_change(const struct agent *a, bool add, bool dry_run, char **ret_file,
			   char **ret_backup, struct err *err);

bool skill_there(const struct agent *a);
