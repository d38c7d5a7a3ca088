/*
 * keeper.h - the parent of cowfsd, which starts it again when it dies.
 *
 * The same program under another name, with one thread and nothing open.  Programs on the mounts of a
 * cowfsd that was killed see errors until there is another one; with a keeper that takes a moment.
 * It ends with a cowfsd that ends in order, and passes SIGTERM and SIGINT on.
 */
#pragma once

#define KEEPER_NAME "cowfsd-keep"

/* The exit code.  Only for a process that was started under KEEPER_NAME, as cowfsd is under its own. */
int keeper_main(int argc, char **argv);
