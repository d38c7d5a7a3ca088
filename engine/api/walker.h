/*
 * walker.h - the process that reads the directories of a warm clone (warm-clone-i.h).
 *
 * The same program under another name. It cannot be a thread of cowfsd: one that waits for a mount
 * of its own process cannot be killed.
 */
#pragma once

#define WALKER_NAME "cowfsd-walk"
#define WALKER_FD   3 /* the top of what it is to read */

/*
 * The exit code.  Only for a process that was started under WALKER_NAME.  NULL: names are to be
 * read; else they are known, and what is in small files is, while the process of this number
 * (a text) is its parent.
 */
int walker_main(const char *parent);
