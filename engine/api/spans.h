/*
 * spans.h - runs that have ended, sent as spans to a collector of OpenTelemetry.
 *
 * The records of runs are the queue, so no run ever waits for a collector, and the queue is as long
 * as the store keeps records (ENGINE_RUNS_KEPT). A file for each endpoint holds its position, which
 * moves only when the collector has taken a batch. A collector that is down gets everything later;
 * one that fails after it took a batch may get that batch twice.
 */
#pragma once

#include "base/buf.h"
#include "base/strlist.h"
#include "engine/api/run.h"

#define ENGINE_SPANS_BATCH 256 /* runs in a request */

struct engine_spans {
	uint64_t sent;
	uint64_t refused; /* that the collector cannot understand; they are not sent again */
};

struct engine_collector {
	char *url;              /* owned; without a path, /v1/traces is meant.  NULL: none */
	struct strlist headers; /* "Name: value", sent with every request */
};

void engine_collector_done(struct engine_collector *c);

/* The one that config.yaml names (metrics.otlp).  -EINVAL with a sentence if the file cannot be understood. */
NODISCARD int engine_collector(const struct engine *e, struct engine_collector *ret,
			       struct err *err);

/* Append `n` runs, oldest first, as the body of a request. */
typedef int engine_spans_fn(const struct engine_run *list, size_t n, struct buf *out,
			    struct err *err);

/*
 * Send what has ended since the last time.  `wait`: if another process is sending, send after it, unless
 * one waits for that already: it will send all that has ended by now, and 0 is returned at once.  -EINVAL for a URL that is none, or that would send commands over a network in plain text; -EBUSY if
 * another process is sending to it; -EAGAIN if the collector wants us to come back later; or why it cannot
 * be reached.  *ret then counts what was sent before.
 */
NODISCARD int engine_spans_send(struct engine *e, const struct engine_collector *to, bool wait,
				engine_spans_fn *encode, struct engine_spans *ret, struct err *err);
