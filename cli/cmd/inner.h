/*
 * inner.h - command lines that a server of ours runs for its clients, each in a process of its own.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "cli/cmd.h"

struct inner {
	const struct invocation *inv; /* of the server: its directory and its store */
	const char *session;          /* a label for what agents keep; NULL: they keep nothing */
	bool by_agent;                /* nobody sits at a terminal */
	struct engine *engine;        /* owned; with no store open; NULL: not needed yet */
};

void inner_done(struct inner *in);

/* In a child process: what was asked for, as if typed with --json there.  The exit code. */
int inner_run(const struct inner *in, int argc, char **argv, FILE *out);

/* The same as if typed without --json. */
int inner_print(const struct inner *in, int argc, char **argv, FILE *out);

/* The number of the last thing that happened in the store; 0: nothing, or it is not known. */
uint64_t inner_newest(struct inner *in);

/*
 * In a child process: a line of JSON with `kind`, `clone`, `run` and `data` for each thing that
 * happens, until `stop_fd` can be read.  A store or a project that is not there yet may come.
 */
void inner_follow(const struct inner *in, uint64_t since, int stop_fd, FILE *out);
