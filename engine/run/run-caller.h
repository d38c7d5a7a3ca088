/*
 * run-caller.h - what a run changes in the calling process, and restores.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

/* If the run has its own terminal, ours passes every key on, ^C included. */
struct raw_terminal {
	int fd; /* -1: nothing to put back */
	struct termios was;
};

void raw_terminal_begin(struct raw_terminal *raw, int fd); /* -1, or no terminal: nothing happens */
void raw_terminal_end(struct raw_terminal *raw);

/*
 * The signal that cancels a run is blocked before anybody can know of the run and stays pending until
 * we look at it.  One that comes too late ends nothing.
 */
struct cancel_wait {
	bool on;
	sigset_t was;
};

void cancel_wait_begin(struct cancel_wait *c);
bool cancel_wait_has_come(void);
void cancel_wait_end(struct cancel_wait *c);
