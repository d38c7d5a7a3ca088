/*
 * help.h - what can be typed, told from the tables that the parser reads.
 */
#pragma once

#include "cli/cmd.h"

extern const struct opt global_opts[]; /* of every command; main.c */

/* What `snap help` prints, of one command or (NULL) of all. */
NODISCARD int help_print(const struct invocation *inv, const struct command *c, struct err *err);
