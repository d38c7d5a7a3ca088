/*
 * walker.h - the process that reads the directories of a spare clone (spare-i.h).
 *
 * The same program under another name.  It is no thread of cowfsd: one that waits for a mount of
 * its own process cannot be killed.
 */
#pragma once

#include <stdbool.h>

#define WALKER_NAME "cowfsd-walk"
#define WALKER_FD   3 /* the top of what it is to read */

/*
 * The exit code.  Only for a process that was started under WALKER_NAME.  `ahead`: names are
 * known, and what is in small files is to be read.
 */
int walker_main(bool ahead);
