/*
 * lookup.h - look up the addresses of a name, in a process of its own.
 *
 * The resolver of libc may take long and cannot be interrupted; a child can.  It has no
 * descriptor but its pipe and ends with its parent.
 */
#pragma once

#include "runner/net/addr.h"
#include "runner/net/loop.h"

#define LOOKUP_ADDRS_MAX 16

struct lookup {
	pid_t pid;
	struct loop_watch watch;
	struct addr addrs[LOOKUP_ADDRS_MAX];
	size_t n; /* of addrs, once it is done */
};

/* Calls `done` when lookup_read() has an answer. */
NODISCARD int lookup_start(struct lookup *l, struct loop *loop, const char *host, loop_fn done,
			   void *owner, struct err *err);

void lookup_read(struct lookup *l);
void lookup_stop(struct lookup *l, struct loop *loop); /* whether it had an answer or not */
