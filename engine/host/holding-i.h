/*
 * holding-i.h - promised files, held until they are read.
 *
 * Between a promise and the reading of its file, leases (snapshot/capture/lease.h) keep writers of the
 * file waiting, and descriptors keep what is unlinked or renamed readable.  A writer that comes has
 * the promise kept at once.  What cannot be held is promised all the same: then only its times tell
 * whether it is what was promised.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "cowfs/store/object.h"

struct holding;

/* Keep the promise, now; its writer waits. */
typedef int (*holding_keep_fn)(void *ctx, const struct object_id *promise);

/* NULL where files cannot be held, or without memory. */
struct holding *holding_new(holding_keep_fn keep, void *ctx);
void holding_free(struct holding *h); /* writers that wait are served first; NULL is fine */

/*
 * Hold the file of a promise through a duplicate of `fd`.  0; -EAGAIN if somebody has it open for
 * writing; or why else it is not held.
 */
NODISCARD int holding_add(struct holding *h, const struct object_id *promise, int fd,
			  uint64_t size);

/* Let it go, after a keep of it that is under way; nothing happens to one that is not held. */
void holding_drop(struct holding *h, const struct object_id *promise);

/* It is not promised after all: a writer that comes is not held up.  Never waits. */
void holding_forget(struct holding *h, const struct object_id *promise);

/* A descriptor of the file, the caller's own; -ENOENT if it is not held. */
NODISCARD int holding_open(struct holding *h, const struct object_id *promise);
