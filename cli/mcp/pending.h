/*
 * pending.h - a request that a session answers later.
 */
#pragma once

#include "cli/mcp/session.h"

/* Keep a request; `m` is then empty.  NULL: no memory. */
NODISCARD struct pending_call *pending_keep(struct session *s, struct rpc_message *m, bool modern);

/* The request was answered. */
void pending_finish(struct session *s, struct pending_call *p);

/* Give the request an id for a question of ours; the session then waits for the answer. */
void pending_ask(struct session *s, struct pending_call *p);
