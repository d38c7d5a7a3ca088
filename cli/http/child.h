/*
 * child.h - a process of a server that answers one request: its output, its errors and its exit
 * code.
 *
 * A server has one thread and forks. The child does what a command line does, so that requests are
 * answered in parallel, and none can harm the next.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* Begins with child_start(); child_done() ends its process and frees it. */
struct child {
	pid_t pid;           /* 0: it has ended */
	int out_fd, note_fd; /* what it prints, what it says beside; -1: closed */
	struct buf out, notes;
	int status; /* its exit code once it has ended; -1: it died */
};

/* In the child: print to `out` and return the exit code.  None of the server's descriptors is open. */
typedef int (*child_fn)(FILE *out, void *ctx);

NODISCARD int child_start(struct child *c, child_fn fn, void *ctx, struct err *err);

/* The descriptors to poll for; returns how many of the two. */
size_t child_poll(const struct child *c, struct pollfd fds[2]);

/*
 * Read what there is without waiting.  True once it has ended and all of it was read: `out` is then
 * all that it printed.  Until then the caller may take bytes from the beginning of `out`.
 */
bool child_read(struct child *c);

/* End its process at once: only one that changes nothing. */
void child_kill(struct child *c);

/* End its process, as if its terminal had gone, and read what it still prints. */
void child_stop(struct child *c);

/* The same, and free it. */
void child_done(struct child *c);
