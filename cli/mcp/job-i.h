/*
 * job-i.h - shared by the two kinds of jobs: runs and experiments.
 */
#pragma once

#include "base/json.h"
#include "cli/mcp/job.h"

/* What a command line printed, parsed. */
struct printed {
	struct json_doc doc;
	struct json j;
	char *text; /* owned */
	size_t len;
	int status;
};

void printed_done(struct printed *p);

/* Run a command line; the words are taken as they are, and a NULL ends them. */
NODISCARD int job_capture(const struct mcp_options *o, char **words, struct printed *ret);
bool job_failed(const struct printed *p);

/* Print it as it is; returns its exit code. */
int job_pass_on(const struct printed *p, FILE *out);

/* A call that is cancelled while the job starts lives until the server knows its id. */
void job_begin(void);
void job_say_id(FILE *out, const char *id);

/* What a tool of experiments does.  Returns the exit code. */
int job_experiment(const struct mcp_options *o, struct tool_line *line, FILE *out);
