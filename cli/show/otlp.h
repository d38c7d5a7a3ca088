/*
 * otlp.h - recorded runs as spans of OpenTelemetry.
 */
#pragma once

#include "base/buf.h"
#include "engine/api/run.h"

/*
 * Append an ExportTraceServiceRequest in one line of JSON, in the order of the list.  A run that had a
 * TRACEPARENT is a child of the span that it names; any other is a trace of its own.  Runs that have
 * not ended have no span yet.
 */
NODISCARD int otlp_append(const struct engine_run *list, size_t n, struct buf *out,
			  struct err *err);
