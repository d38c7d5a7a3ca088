/*
 * pump.h - the streams of a run: its output, up to a cap, and its input.
 *
 * The run has pipes or a terminal of ours, never a descriptor of the caller's: reopening a file
 * through /proc/self/fd, or ioctls on a terminal, would be a way out.
 */
#pragma once

#include <poll.h>

#include "runner/sandbox-i.h"

#define PUMP_PLACES 4
#define PUMP_CHUNK  65536

struct pump {
	struct run *run;
	int in;        /* the caller's; -1 when there is no more */
	bool terminal; /* run->our[0] is its master, for both directions */
	uint64_t left; /* of the output */
	bool capped;
	bool truncated;
	size_t held, sent; /* of `input`, which waits until the run takes it */
	char input[PUMP_CHUNK];
};

void pump_init(struct pump *p, struct run *run);
void pump_take_terminal(struct pump *p, int master); /* takes it */
void pump_resize(struct pump *p);                    /* the caller's terminal has changed */

/* What to poll for, and then what to do about it. */
void pump_places(const struct pump *p, struct pollfd places[PUMP_PLACES]);
NODISCARD int pump_move(struct pump *p, const struct pollfd places[PUMP_PLACES], struct err *err);

/* The rest, when nobody is left to write more. */
NODISCARD int pump_drain(struct pump *p, struct err *err);
