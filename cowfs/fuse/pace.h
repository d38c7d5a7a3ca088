/*
 * pace.h - private to fuse/: on a busy machine no clone takes more than its share of this process.
 *
 * The kernel shares processors between runs, but charges none of them for the work of cowfsd. So a
 * run that causes much work here would take processors from the programs of all others. While more
 * threads are ready to run than there are processors, the clones in use share half of the
 * processors here, evenly. A clone that has had more rests before its next request, and its
 * programs wait meanwhile. A clone that is alone, or on a machine with idle processors, never
 * rests.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

/* A clone is in use for so long after requests of some weight: a compiler asks for nothing while it computes. */
#define PACE_USED_NS 10000000000ull
#define PACE_HEAVY_NS \
	200000ull /* such a weight, between two looks: an editor's question is a tenth of it */

#define PACE_LOOK_NS  1000000ull  /* between two looks at a mount */
#define PACE_BURST_NS 5000000ull  /* more than its part, before it rests */
#define PACE_DEBT_NS  25000000ull /* at most: what is beyond is forgiven */
#define PACE_REST_NS  5000000ull  /* at a time */

struct pace;

/* All mounts of the process. */
struct paces {
	pthread_mutex_t lock;
	struct pace *first;       /* guarded by it */
	unsigned cpus;            /* that there are */
	atomic_uint used;         /* clones in use, as of the last count, */
	_Atomic uint64_t next_ns; /* and when the next is due */
};

void paces_init(struct paces *all, unsigned cpus);
void paces_done(struct paces *all); /* every mount has left */

/* One mount.  Times are thread_now()'s; of one thread at a time, unless it says otherwise. */
struct pace {
	struct paces *all;          /* NULL: it has not joined */
	const void *clone;          /* mounts of the same one are not each other's rivals */
	_Atomic uint64_t *aside;    /* borrowed: spent for the clone, but not in a request */
	struct pace *before, *next; /* guarded by all->lock */
	_Atomic uint64_t spent;     /* processor time, of all threads that worked for it */
	_Atomic uint64_t asked; /* when its last requests of some weight came, about; 0: never */
	uint64_t counted;       /* of `spent`, by the last look, */
	uint64_t looked;        /* which was then */
	uint64_t debt;          /* what it has had beyond its part */
};

/*
 * `aside` counts processor time that is spent for the clone, but in no request: what the first of its
 * mounts to have a look finds there it takes, and it is that one's.
 */
void pace_join(struct paces *all, struct pace *p, const void *clone, _Atomic uint64_t *aside);
void pace_leave(struct pace *p); /* one that has not joined is fine */

/* Any thread: so much processor time went into its requests. */
void pace_spend(struct pace *p, uint64_t ns);

/* Is it time for a look?  Asked for with every request, so it is to cost nothing. */
static inline bool pace_is_due(const struct pace *p, uint64_t now)
{
	return now - p->looked >= PACE_LOOK_NS;
}

/*
 * A look: requests come.  How long it is to rest before the next, 0 for not at all; then look once
 * more.  `crowded` says that more threads are ready to run than there are processors.
 */
uint64_t pace_look(struct pace *p, uint64_t now, bool crowded);
