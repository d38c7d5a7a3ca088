/*
 * runs.h - prints runs: the members that `run`, `runs` and `ps` have in common.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/run.h"

/* Its members; of one that runs, what is not known yet is null. */
void runs_set_json(struct json j, const struct engine_run *r);

/* "changed": counts, and in a result the paths too. */
void runs_set_changed(struct json j, const struct engine_run *r);

/* A line for each port that is published, with `end` at its end. */
void runs_print_published(FILE *out, const struct engine_run *r, const char *end);

/* The name of its clone; "-" for one that was made for it and not kept, which its id names. */
const char *runs_clone(const struct engine_run *r);

/* How many bytes of a command fit beside `others` columns; a very narrow terminal breaks the line. */
size_t runs_command_room(const struct invocation *inv, size_t others);

/* Its words as a shell would take them, as far as they fit. */
void runs_print_command(FILE *out, const struct engine_run *r, size_t most);

/* How many of them were on that clone, and not on one that had its name before. */
uint64_t runs_count(const struct engine_runs *runs, const struct engine_clone *c);

/* How it ended, in a word or two. */
const char *runs_outcome(const struct engine_run *r, char text[OUT_COUNT_MAX]);

/* With which exit code a command ends that ends as the run did: 137 for one of which that is not known. */
int runs_code(const struct engine_run *r);

/* "run", "state", "exit_code" and "problem" alone. */
void runs_set_end(struct json j, const struct engine_run *r);

/* The answer of a command that prints a log as JSON; with `usage` what the run used, too. */
NODISCARD int runs_print_log(const struct invocation *inv, const struct engine_run *run,
			     const struct engine_log_options *options, bool usage, struct err *err);
