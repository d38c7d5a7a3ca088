/*
 * experiments.h - an experiment as JSON, as a table, and as progress.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/experiment.h"

/* The members of an experiment; with standings (NULL: none) those of its arms, too. */
struct standings;
void experiments_set_json(struct json j, const struct engine_experiment *x,
			  const struct standings *s);

/* The same in a list: who, when, and what came of it. */
void experiments_set_summary(struct json j, const struct engine_experiment *x);

/* One arm of it. */
void experiments_set_arm(struct json j, const struct engine_arm *arm);

/* How far it is, in a word; "interrupted" if nobody works on it. */
const char *experiments_state(const struct engine_experiment *x);

/* The experiment that it waits for before it measures; NULL: none. */
const char *experiments_waits_for(const struct engine_experiment *x);

/* Its command has begun; only then there is a time. */
bool experiments_has_time(const struct engine_arm *arm);

/* It is known how many lines it changed. */
bool experiments_has_lines(const struct engine_arm *arm);

/* A row for each arm; the verdict, warnings and rates below. */
void experiments_print(const struct invocation *inv, FILE *out, const struct engine_experiment *x);
void experiments_print_list(const struct invocation *inv, const struct engine_experiments *l);

/* While it goes on: a table on a terminal, else a line for each step; with --steps as JSON. */
struct experiments_view {
	const struct invocation *inv;
	bool live;      /* standard error is a terminal that can take back what it shows */
	bool steps;     /* JSON lines on standard output */
	int lines;      /* that the table has now */
	uint64_t *seen; /* owned; the last state of each arm that a line told, and one more */
	size_t n_seen;
	char *
	    waits_for; /* owned; the last experiment that a line said it waits for; NULL: none did */
};

void experiments_view_begin(struct experiments_view *v, const struct invocation *inv, bool steps);
void experiments_view_done(struct experiments_view *v); /* takes the table away */

/* `ctx` is a struct experiments_view; `tell` of engine_experiment_options. */
void experiments_tell(const struct engine_experiment *x, const struct engine_arm *arm, void *ctx);
