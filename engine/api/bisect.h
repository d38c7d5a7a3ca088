/*
 * bisect.h - find the first bad snapshot or commit of a line of them, with several clones at once.
 *
 * Each step runs the command on k states that split the remaining range into k+1 parts. A state is
 * good if the command ends with 0, skipped if with 125, else bad, as with `git bisect run`. Each
 * run has its own clone, which is removed after it; the project is never touched.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "engine/api/run.h"

enum engine_verdict { ENGINE_UNTRIED, ENGINE_GOOD, ENGINE_BAD, ENGINE_SKIPPED };

/* One state of the line. */
struct engine_bisect_state {
	char *id;    /* owned; of a snapshot or a commit */
	char *title; /* owned; message or subject; may be empty */
	enum engine_verdict verdict;
	unsigned step;                /* that tried it; 0: none, or an earlier call */
	char run[ENGINE_RUN_ID_SIZE]; /* "": none */
	int exit_code;
	uint64_t duration_ms;
};

struct engine_bisect_options {
	const char *good, *bad;
	bool git;       /* they name commits; else they may, if they name no snapshots */
	bool automatic; /* snapshots that nobody asked for take part, too */
	size_t jobs;    /* runs at once; at least 1 */
	/*
	 * Verdicts are appended to this file, and those that it has are not tried again; NULL: none.
	 * -EINVAL if it is of another line or command.
	 */
	const char *log;
	const struct engine_run_options *run; /* argv, profile and limits of each; no clone */
	int stop_fd; /* when it can be read, all runs are cancelled and -EINTR is returned; -1 */
	/* The line is known and the search begins, and a state has its verdict; NULL: who cares. */
	void (*begins)(size_t states, bool git, void *ctx);
	void (*tried)(const struct engine_bisect_state *s, void *ctx);
	void *ctx;
};

#define ENGINE_BISECT_JOBS_MAX 64

struct engine_bisect {
	struct engine_bisect_state *list; /* owned; from good to bad */
	size_t n;
	bool git;
	size_t good, bad; /* in the list: the last good one, and the first bad one known */
	bool found;       /* nothing lies between the two; else all there were skipped */
	bool unsteady;    /* a state is good although one before it is bad */
	unsigned steps;
	size_t runs; /* that had a verdict in this call */
	uint64_t elapsed_ms;
};

void engine_bisect_done(struct engine_bisect *b);

/* -ENOENT, -EINVAL with a sentence if there is no such line; what engine_run_start() fails with. */
NODISCARD int engine_bisect(struct engine *e, const struct engine_bisect_options *options,
			    struct engine_bisect *ret, struct err *err);
