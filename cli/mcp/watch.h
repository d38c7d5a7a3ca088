/*
 * watch.h - a process that follows the events of the store, for clients with subscriptions.
 *
 * It ends when the server does, however that ends: it holds the end of a pipe whose other end is
 * the server's alone.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "cli/mcp/mcp.h"

struct watch {
	pid_t pid;   /* 0: none */
	int fd;      /* what it says; -1: none */
	int life_fd; /* ours alone */
	struct buf in;
};

#define WATCH_INIT ((struct watch){ .fd = -1, .life_fd = -1 })

/* Something that happened; borrowed from `doc`. */
struct change {
	struct json_doc doc;
	const char *kind, *clone, *run, *experiment; /* all but the first may be NULL */
};

/* Nothing that happens after this returns is missed.  -ENOTSUP if the server cannot follow. */
NODISCARD int watch_start(struct watch *w, const struct mcp_options *o, struct err *err);
void watch_done(struct watch *w);

/* What is there of its output; nothing waits. */
void watch_read(struct watch *w);

/* The next change that was read; false: there is none.  json_done(&ret->doc) frees it. */
bool watch_next(struct watch *w, struct change *ret);
