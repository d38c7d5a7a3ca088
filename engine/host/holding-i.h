/*
 * holding-i.h - promised files, held until they are read.
 *
 * Between a promise and the reading of its file, leases (snapshot/capture/lease.h) keep writers of
 * the file waiting, and descriptors keep an unlinked or renamed file readable. When a writer comes,
 * the promise is kept at once. A file that cannot be held is promised too: then only its times show
 * whether it is still the promised one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/cleanup.h"
#include "cowfs/store/object.h"
#include "snapshot/capture/lease.h"

struct holding;

/* Keep the promise, now; its writer has waited for so long.  -EAGAIN: not yet, ask again. */
typedef int (*holding_keep_fn)(void *ctx, const struct object_id *promise, uint64_t waited_ms);

/* NULL where files cannot be held, or without memory. */
struct holding *holding_new(holding_keep_fn keep, void *ctx);
void holding_free(struct holding *h); /* writers that wait are served first; NULL is fine */

/* leases_try() for a file that may be about to be promised. */
NODISCARD int holding_try(struct holding *h, int fd, struct lease_trial *ret);

/* Hold the file of a promise, which was tried.  0, and the descriptor is ours; or why it is not held. */
NODISCARD int holding_add(struct holding *h, const struct object_id *promise, int fd, uint64_t size,
			  const struct lease_trial *t);

/*
 * It was kept: nobody reads it through this any more.  Let it go, or leave that to the keep for its
 * writer that has begun.  Never waits.
 */
void holding_drop(struct holding *h, const struct object_id *promise);

/* The promises whose files are held: an array, which the caller frees.  NULL without memory. */
struct object_id *holding_list(struct holding *h, size_t *ret_n);

bool holding_has(struct holding *h, const struct object_id *promise);

/* A descriptor of the file, the caller's own; -ENOENT if it is not held. */
NODISCARD int holding_open(struct holding *h, const struct object_id *promise);
