/*
 * ui.h - the page of `snap ui`, and the server behind it.
 *
 * The same server answers GET /metrics, which needs the token like any request: Prometheus brings
 * it as its `credentials`.
 *
 * The page shows what the command line prints with --json: each of its requests runs one command
 * line in a process of its own. So the page can do nothing that a person could not type, and has no
 * second idea of what a clone or a run is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/err.h"

struct ui_options {
	const char *token;  /* that every question must bring */
	const char *listen; /* "127.0.0.1:8850"; the port 0 is any that is free */
	const char *socket; /* the path of a unix socket instead; NULL: none */
	bool read_only;     /* answer no question that changes anything */
	bool only_metrics;  /* serve no page and answer no question: only GET /metrics */

	/* The page has an address now; `url` is NULL for a unix socket. */
	void (*on_ready)(const char *url, void *ctx);

	/* In a child process: a command line as if typed with --json in the project.  The exit code. */
	int (*run_line)(int argc, char **argv, FILE *out, void *ctx);

	/* In a child process: what `snap metrics` prints.  The exit code. */
	int (*print_metrics)(FILE *out, void *ctx);

	/* In a child process: a line of JSON for each thing that happens, until `stop_fd` can be read. */
	void (*follow)(uint64_t since, int stop_fd, FILE *out, void *ctx);
	uint64_t (*newest)(void *ctx); /* the number of the last thing that happened */
	void *ctx;
};

/* Serve the page until SIGTERM, SIGINT or SIGHUP.  0 or a negative errno. */
NODISCARD int ui_serve(const struct ui_options *options, struct err *err);
