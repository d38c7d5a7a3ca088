/*
 * run-events.h - a run in the stream of events (docs/reference/events.md).
 */
#pragma once

#include "engine/api/run.h"

void run_event_started(const char *store, const struct engine_run *run);

/* What became of a question. */
void run_event_answered(const char *store, const struct engine_run *run,
			const struct engine_answered *a);

/* That it ended, and before that what it was refused and which limit it met. */
void run_event_ended(const char *store, const struct engine_run *run);
