/*
 * traffic.h - counts of the requests to each live clone, through all of its mounts.
 *
 * Counting is one relaxed addition, so a reader may see a count that is a moment old.
 */
#pragma once

#include "cowfs/core/layers.h"

struct traffic {
	uint64_t requests;      /* answered */
	uint64_t read, written; /* bytes; read is what the kernel had not in its memory */
	uint64_t waiting;       /* requests that wait for the store, for room, or for a thread */
	uint64_t rests;         /* times that its next request was held back for other clones */
};

void traffic_answered(struct layer *l);
void traffic_waits(struct layer *l);
void traffic_waits_no_more(struct layer *l);
void traffic_rested(struct layer *l);

/*
 * Nanoseconds of processor time that went into storing its changes and that no caller sees as its
 * own: of the committer, and of threads that help to store much at once.  A caller that charges
 * somebody for it subtracts it here.
 */
_Atomic uint64_t *traffic_work(struct layer *l);

/* Of each open clone; `fn` must take no lock.  A negative answer ends it and is returned. */
typedef int (*traffic_fn)(const char *clone, const struct traffic *t, void *ctx);
NODISCARD int traffic_each(struct layers *ls, traffic_fn fn, void *ctx);
