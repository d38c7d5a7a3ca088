/*
 * manager.h - a process that stands in for systemd, on the manager's socket or behind a bus.
 *
 * It makes scopes in the tree of cgroupfs.h, below "/user.slice/manager.service", and does in
 * other ways what real managers do wrong.  The test program is an ordinary user to the code that
 * is tested (geteuid is wrapped), so that the sockets are looked for in $XDG_RUNTIME_DIR.
 */
#pragma once

#include <stdbool.h>

#define MANAGER_GROUP "/user.slice/manager.service"

enum manager_way {
	MANAGER_OBEYS,
	MANAGER_REFUSES, /* answers the request with an error */
	MANAGER_FAILS,   /* the job ends, and not well */
	MANAGER_SILENT,  /* takes the request, and that is all */
	MANAGER_DEAF,    /* listens, and takes no connection */
	MANAGER_LEAVES,  /* hangs up */
	MANAGER_LIES,    /* says that it is done, and has moved nobody */
	MANAGER_LAX,     /* makes the scope without its limits */
	MANAGER_KEEPS,   /* stops nothing, and does not say so */
};

/* `bus_pid`: behind a bus, to which this process is that one; 0: on a socket of its own. */
void manager_start(enum manager_way way, int bus_pid);
void manager_stop(void);
void manager_wait(void); /* until it has done what it was asked for; the connection is closed */
bool manager_was_asked(void); /* for a scope */
