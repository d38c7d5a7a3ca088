/*
 * keeper.h - the parent of cowfsd, which starts it again when it dies.
 *
 * The same program under another name, with one thread and nothing open. Programs on the mounts of
 * a killed cowfsd see errors until there is another one; with a keeper that takes a moment. The
 * keeper ends when cowfsd ends in order, and passes SIGTERM and SIGINT on.
 */
#pragma once

#define KEEPER_NAME "cowfsd-keep"

/* The exit code.  Only for a process that was started under KEEPER_NAME, as cowfsd is under its own. */
int keeper_main(int argc, char **argv);
