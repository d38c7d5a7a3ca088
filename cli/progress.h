/*
 * progress.h - progress of a long act, for a person who waits or reads a log.
 *
 * On a terminal one line appears after a second, redraws itself a few times a second, and
 * disappears when the act is done. Elsewhere a plain line every few seconds, and none for a short
 * act.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/api/engine.h"

enum progress_way {
	PROGRESS_NONE,  /* nobody is looking */
	PROGRESS_LINE,  /* a terminal that can take back what it shows */
	PROGRESS_PLAIN, /* anything else */
};

struct progress {
	FILE *to;
	enum progress_way way;
	uint64_t (*clock_ms)(void);
	uint64_t start_ms, shown_ms;
	char doing[32];   /* the part of the act that runs */
	uint64_t part_ms; /* when it began */
	bool drawn;
};

/* In the way that fits `to`. */
void progress_init(struct progress *p, FILE *to, bool wanted);

/* In this way, by this clock. */
void progress_init_way(struct progress *p, FILE *to, enum progress_way way,
		       uint64_t (*clock_ms)(void));

void progress_done(struct progress *p); /* takes the line away */

/* On a terminal: a check has begun, which may take long and prints nothing until it has ended. */
void progress_show_check(struct progress *p, const char *command);

/* What the engine reports to. */
struct engine_watch progress_watch(struct progress *p);
