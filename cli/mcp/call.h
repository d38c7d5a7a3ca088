/*
 * call.h - one call of a tool, in a process of its own.
 */
#pragma once

#include <poll.h>

#include "base/json.h"
#include "cli/http/child.h"
#include "cli/mcp/job.h"
#include "cli/mcp/mcp.h"
#include "cli/mcp/tool.h"

/* Begins with call_start(); call_done() ends its process and frees it. */
struct call {
	struct child child;
	char run[JOB_ID_MAX]; /* or experiment that it started and waits for; "": none */
};

/* Start the command line `line`, which the call takes. */
NODISCARD int call_start(struct call *c, const struct mcp_options *options, struct tool_line *line,
			 struct err *err);

/* The descriptors to poll for; returns how many of the two. */
size_t call_poll(const struct call *c, struct pollfd fds[2]);

/* Read what there is without waiting.  True once it has ended and all of it was read. */
bool call_read(struct call *c);

/* End its process, as if its terminal had gone; `run` then names what it had started. */
void call_stop(struct call *c);

/* The same, and free it. */
void call_done(struct call *c);
