/*
 * relay.h - carries bytes between two stream sockets, both ways, and passes on the end of each.
 *
 * Way 0 goes from side 0 to side 1, way 1 back. A way may have a filter that sees all bytes before
 * they go on. A side may be missing for a while: bytes for it wait, up to a bound, and then their
 * sender has to.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "runner/net/loop.h"

#define RELAY_CHUNK 65536

/*
 * Move what may go on from `in` to `out` and leave the rest; `eof`: no more will come.  A
 * negative answer ends the relay.  `in` holds RELAY_CHUNK bytes at most.
 */
typedef int (*relay_filter_fn)(void *ctx, struct buf *in, struct buf *out, bool eof);

struct relay_way {
	struct buf in, out;
	size_t sent; /* of `out` */
	bool eof;    /* the source has ended */
	bool shut;   /* the sink knows, or is gone */
	bool held;   /* the filter keeps more than `in`: ask it again, and end nothing before */
	relay_filter_fn filter;
};

struct relay {
	struct loop *loop;
	struct loop_watch side[2];
	struct relay_way way[2];
	void *ctx; /* of the filters */
};

/* No sides yet; their watches tell `ready`, which calls relay_run(). */
void relay_init(struct relay *r, struct loop *loop, loop_fn ready, void *owner);
void relay_done(struct relay *r);

/* Give it a side; takes the descriptor, which must not block. */
void relay_attach(struct relay *r, int side, int fd);

/* Do what can be done now: 0 while it lives, 1 when both ways have ended, or what failed. */
NODISCARD int relay_run(struct relay *r);

/* The first n bytes of a buffer are no longer wanted. */
void relay_consume(struct buf *b, size_t n);

/* Let the first n bytes go on. */
NODISCARD int relay_pass(struct buf *in, struct buf *out, size_t n);
