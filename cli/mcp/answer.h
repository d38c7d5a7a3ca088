/*
 * answer.h - the answers of a session: lists, results of calls, failures.
 */
#pragma once

#include "cli/mcp/session.h"

#define MCP_VERSION "2026-07-28"

#define MCP_INSTRUCTIONS                                                                               \
	"snap gives this project instant writable clones, save points, a sandbox and a careful way "   \
	"back. Make a clone with snap_clone and work in it: with snap_read, snap_edit and "            \
	"snap_write, or with your own tools at the path it answers with. Run builds and tests with "   \
	"snap_run. Take snap_snapshot before a risky step and snap_rollback if it goes wrong. When "   \
	"the work is good, look at snap_diff, then use snap_promote with dry_run, then snap_promote. " \
	"Nothing that happens in a clone touches the real files until it is promoted."

void answer_capabilities(const struct session *s, struct json j);

/* The page that a client reads at an address (app.h). */
NODISCARD int answer_page(struct session *s, const struct rpc_message *m, bool modern,
			  struct err *err);

/* How long a list may be kept, in the newer era. */
void answer_set_cacheable(struct json result);

/* Requests that need no process: lists, discovery, ping.  A method that nobody knows fails. */
NODISCARD int answer_listing(struct session *s, const struct rpc_message *m, bool modern,
			     struct err *err);

/* A recipe for a person's question. */
NODISCARD int answer_prompt(struct session *s, const struct rpc_message *m, bool modern,
			    struct err *err);

/* What a call that has ended printed. */
NODISCARD int answer_call(struct session *s, const struct pending_call *p, struct err *err);

/* The same for one that was not made: a result that the model can read and mend. */
NODISCARD int answer_refusal(struct session *s, const struct pending_call *p, const char *code,
			     const char *sentence, struct err *err);

/* Of a request for a call: an empty place if there are none. */
struct json call_arguments(const struct rpc_message *m);
