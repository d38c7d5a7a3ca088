/*
 * mover.h - the process that moves the mount of a warm clone to its place, for an ordinary user.
 *
 * The same program under another name. It cannot be a thread of cowfsd: only a process with one
 * thread can leave its user namespace.
 */
#pragma once

#define MOVER_NAME "cowfsd-move"

/* `MOVER_NAME FROM TO`, both absolute.  The exit code is 0, or the errno of what failed. */
int mover_main(int argc, char **argv);
