/*
 * help.h - the help texts, generated from the tables that the parser reads.
 */
#pragma once

#include "cli/cmd.h"

/* What `snap help` prints, of one command or (NULL) of all. */
NODISCARD int help_print(const struct invocation *inv, const struct command *c, struct err *err);
