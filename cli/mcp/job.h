/*
 * job.h - a run or an experiment that an agent starts and that may outlast its call.
 *
 * Clients give up on a call after a minute. So a run is started detached, and the call waits for it
 * as long as it may. Then the answer has the run's id and the end of its output so far.
 */
#pragma once

#include <stdio.h>

#include "cli/mcp/mcp.h"
#include "cli/mcp/tool.h"

#define JOB_ID_MAX     40
#define JOB_ID_MARK    '\x05' /* comes before the id of a job that was started, as a line of its own */
#define JOB_EXPERIMENT '='    /* begins the id of an experiment: its name follows */

/* In the child of a call: do what a tool with a `job` does.  Returns the exit code. */
int job_run(const struct mcp_options *o, struct tool_line *line, FILE *out);

/* In the server: cancel a job, without waiting for that. */
void job_cancel(const struct mcp_options *o, const char *id);
