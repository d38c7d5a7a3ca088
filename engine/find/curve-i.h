/*
 * curve-i.h - samples of a run as text: a line each, "AT CPU MEMORY WRITTEN PROCESSES".
 *
 * During a run its samples are appended to runs/ID.use; at its end they go into its record.
 */
#pragma once

#include "base/buf.h"
#include "engine/api/curve.h"

NODISCARD int curve_append(struct buf *out, const struct engine_sample *s);

/* Add each complete line of `text`; what is none is passed over. */
void curve_read(const char *text, struct engine_curve *ret);
