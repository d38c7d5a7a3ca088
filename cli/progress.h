/*
 * progress.h - one line on a terminal that says how far a long act is.
 *
 * Shows nothing for the first second, then redraws itself a few times a second, and
 * is gone when the act is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/api/engine.h"

struct progress {
	FILE *to; /* NULL: nobody is looking */
	uint64_t start_ms, drawn_ms;
	bool drawn;
};

/* Draws on `to` if that is a terminal which can take back what it shows. */
void progress_init(struct progress *p, FILE *to, bool wanted);
void progress_done(struct progress *p); /* takes the line away */

/* What the engine reports to. */
struct engine_watch progress_watch(struct progress *p);
