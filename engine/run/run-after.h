/*
 * run-after.h - the end of a run: its record, its event, and its span.
 */
#pragma once

#include "engine/find/run-record.h"

/*
 * End the record and tell of it.  If config.yaml names a collector (metrics.otlp), a process of its own
 * sends the span: nobody waits for it, and what it fails with is in the daemon's log.
 */
void run_after_end(struct engine *e, struct run_record *record, struct engine_run *run);
