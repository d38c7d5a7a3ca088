/*
 * tasks.h - commands with a name: the user's own, then those in the project's files.
 */
#pragma once

#include <stddef.h>

#include "cli/cmd.h"

struct task {
	char *name, *line;  /* owned; the line is for the shell */
	const char *source; /* where it was found: "config.yaml", "package.json", ... */
};

struct tasks {
	struct task *list; /* owned; of two with one name the first counts */
	size_t n, cap;
};

void tasks_done(struct tasks *t);

/* Of the project that holds the directory of the command.  A file that cannot be understood tells of none. */
NODISCARD int tasks_load(const struct invocation *inv, struct tasks *ret, struct err *err);

const struct task *tasks_find(const struct tasks *t, const char *name); /* NULL: none */
