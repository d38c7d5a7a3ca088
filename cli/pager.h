/*
 * pager.h - long output a screen at a time, where a person reads it.
 *
 * Output to standard output between pager_begin() and pager_end() goes through $SNAP_PAGER, else
 * $PAGER, else `less -FRX`, but only if it is a terminal. An empty one, or `cat`, means none.
 * Leaving the pager early is no failure.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/cmd.h"

struct pager {
	pid_t pid;                              /* 0: there is none */
	int saved;                              /* standard output as it was */
	FILE *out;                              /* what is paged */
	char *command;                          /* owned */
	struct sigaction pipe, interrupt, quit; /* as they were */
};

/* A pager that cannot be started is no reason not to print. */
void pager_begin(struct pager *p, const struct invocation *inv);

/* Wait until it was left; then all is as before.  May be called without a beginning, and twice. */
void pager_end(struct pager *p);

/* Nobody reads any more: what failed to be printed does not matter. */
bool pager_was_left(const struct pager *p);
