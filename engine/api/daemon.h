/*
 * daemon.h - cowfsd: the process that owns a store.
 *
 * The same program under another name. The first command that needs it starts it, and it serves the
 * store until `stop`, or until it has had nothing to do for a while. docs/design/daemon.md lists
 * its files.
 */
#pragma once

#define DAEMON_NAME     "cowfsd"
#define DAEMON_AGAIN    "--again" /* its keeper starts it: nobody waits to hear of the one before */
#define DAEMON_READY_FD 3         /* where it says, once, that it is ready or why not */
#define DAEMON_START_FD 4         /* locked until then, so that nobody starts another */

#define DAEMON_LISTEN    "--listen" /* the control socket is at DAEMON_LISTEN_FD already */
#define DAEMON_LISTEN_FD 5

/* The exit code.  Only for a process that was started under DAEMON_NAME. */
int daemon_main(int argc, char **argv);
