/*
 * moved.h - a command that finds no project, in the directory of one that moved.
 */
#pragma once

#include "cli/cmd.h"

/*
 * For a command that only reads.  True if a project moved here for certain: the store knows it now, a
 * warning says so, and the command may look again.  If that is only likely, there is a hint.
 */
bool moved_adopt(struct invocation *inv);

/*
 * The same for any other that failed with `r`, which it returns.  It is not run again, because the
 * project may be another one than was meant: the sentence names it, and the hint is to type it again.
 */
int moved_tell(struct invocation *inv, int r, struct err *err);
