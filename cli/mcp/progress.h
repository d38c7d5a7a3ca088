/*
 * progress.h - reports to a client that asked for it how long its call has been at work.
 *
 * Many clients give up on a call that is silent for a minute.
 */
#pragma once

#include "base/clock.h"
#include "cli/mcp/session.h"

/* The request came now. */
void progress_begin(struct pending_call *p);

/* Milliseconds until the next progress goes to the client; -1: it did not ask for any. */
int progress_due(const struct pending_call *p);

/* Tell it, if it is time. */
NODISCARD int progress_tell(struct session *s, struct pending_call *p, struct err *err);
