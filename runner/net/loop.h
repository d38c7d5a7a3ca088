/*
 * loop.h - wait for many descriptors at once, through one that can itself be waited for.
 *
 * A watch is part of the object that owns the descriptor. Stop a watch before its owner goes; its
 * memory must stay until loop_step() has returned.
 */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"

struct loop_watch;
typedef void (*loop_fn)(struct loop_watch *w);

struct loop_watch {
	int fd; /* owned by the watch; -1: none */
	uint32_t events;
	loop_fn ready;
	void *owner;
};

struct loop {
	int fd; /* readable when a step has something to do */
	int timer;
	uint64_t wake_at; /* 0: never */
};

NODISCARD int loop_open(struct loop *l, struct err *err);
void loop_close(struct loop *l); /* of a loop that is all zero, too */

/* Wait for these events (EPOLLIN, EPOLLOUT), or for none.  -ENOMEM or -ENOSPC from the kernel. */
NODISCARD int loop_watch(struct loop *l, struct loop_watch *w, uint32_t events);
void loop_stop(struct loop *l, struct loop_watch *w); /* and close the descriptor */

/* Be ready no later than this, by clock_ms(); only the earliest counts. */
void loop_wake(struct loop *l, uint64_t at_ms);

/* Do what is to be done, waiting up to `ms` for it (-1: for ever). */
NODISCARD int loop_step(struct loop *l, int ms, struct err *err);
