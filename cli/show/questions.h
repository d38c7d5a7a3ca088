/*
 * questions.h - questions of runs, for people and as JSON.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/run.h"

/* "the run 3f9a... wants to connect to 'evil.org:443'", without a line feed. */
void questions_print(FILE *out, const struct engine_question *q);

/* The members of one that is open. */
void questions_set_open(struct json j, const struct engine_question *q);

/* "questions" and "questions_more" of a run's answer. */
void questions_set_json(struct json j, const struct engine_answers *a);

/* The same, or for a run that goes on those that are open, without an answer. */
void questions_set_now(const struct invocation *inv, struct json j, const struct engine_run *run);

/* How a run in the foreground tells of its questions, and where it hears answers. */
struct prompt {
	const struct invocation *inv;
	bool raw;     /* the terminal is the run's own: lines need both ends */
	int terminal; /* owned; -1: a person at this terminal cannot answer */
};

void prompt_begin(struct prompt *q, bool tty, bool detached, struct engine_run_options *o);
void prompt_done(struct prompt *q);
