/*
 * request.h - private to fuse/: one request, from the bytes that were read to its answer.
 *
 * A request is handled at most twice: by the reader, which must not wait, and, if the layer would
 * have had to, once more from the start by a worker that may. The first time has then changed
 * nothing and answered nothing.
 *
 * So one request may overtake another. That is safe: where order matters, the kernel has at most
 * one request in progress (it holds a lock of the inode, the directory or the page until the
 * answer), and a FORGET counts only answers that came before it was sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct mount;

/* What the thread at hand is handling. */
struct request {
	struct mount *mount;
	void *bytes;
	size_t len;
	bool may_wait;
	bool later; /* a thread that may wait must handle it; nothing was answered */
};

/* The one being handled by the calling thread. */
struct request *request_current(void);
void request_set_current(struct request *rq); /* NULL: none any more */

/* In the reader: answer it, or have the pool do so. */
void request_take(struct mount *m, void *bytes, size_t len);

/* A layer_witness_fn; the context is the mount. */
bool request_witness(void *ctx, uint32_t writer, uint64_t node, uint64_t off);

/* How long the oldest request that the pool has is without an answer and without any other
 * having been answered since, in nanoseconds. */
uint64_t request_stalled(struct mount *m, uint64_t now);
