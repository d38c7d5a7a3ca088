/*
 * layers-i.h - private to the core: shared by budget, committer and layers.
 */
#pragma once

#include <stdatomic.h>

#include "cowfs/core/ahead-i.h"
#include "cowfs/core/layer-i.h"

#define MIB ((uint64_t)1 << 20)

/* Between two looks at how much the disk has left, though nothing came. */
#define ROOM_MS 1000

/*
 * As long as the system has the store's files in memory an object is there in some 10 us: less
 * than it takes to wake another thread, let alone two.
 */
#define QUICK_US 150

/* As many as this in a layer that is closed are left to the committer: some hundred us. */
#define LATER_NODES 500

/* Fewer are not worth giving memory back for. */
#define MEMORY_NODES 2000
#define MEMORY_DIRTY ((int64_t)16 << 20)

struct layers {
	struct store *store;
	struct cache *cache;
	struct ahead *ahead;
	struct layers_options options;

	_Atomic int64_t dirty;
	_Atomic uint64_t nodes, persists, removals, store_waits, room_waits;
	_Atomic int64_t load_us;     /* what reading an object took of late */
	_Atomic uint64_t nodes_high; /* since free memory was last given back */
	_Atomic int64_t dirty_high;  /* the same */

	/* When the disk was last looked at, and what was seen; stale values only cost another look. */
	_Atomic int64_t room_at;    /* ms */
	_Atomic int64_t room_until; /* dirty bytes that are no cause for another look */
	_Atomic bool tight;
	_Atomic bool over_limit;      /* by the store's own limit rather than by the disk */
	_Atomic uint64_t hopeless_at; /* persists when nothing could be done about it */
	uint64_t swept_at;   /* persists and removals at the last gc of ours; the committer's own */
	int64_t worked_at;   /* ms, when it last persisted something; its own too */
	bool tightness_told; /* the log has a sentence about it; its own too */

	_Atomic int64_t harden_at; /* ms, when what is committed must be on the disk; 0: it is */

	_Atomic uint64_t appended;      /* by all layers, since the last gc of ours (sweep.c) */
	_Atomic uint64_t sweeping;      /* of that, what the one under way may free */
	_Atomic int64_t appended_at;    /* ms, the last time */
	_Atomic int64_t no_sweep_until; /* ms: it could not be done */
	_Atomic uint64_t sweeps;        /* ended */

	pthread_mutex_t lock; /* guards what follows; a leaf */
	pthread_cond_t work;  /* for the committer */
	pthread_cond_t
	    changed; /* dirty memory fell, a persist failed, or a committer let a layer go */
	struct layer *list;
	struct layer *closed; /* owned; one of which only memory is left, or NULL */
	uint64_t rounds;      /* of the committer, ended */
	unsigned wanted;      /* threads that wait for room */
	unsigned apart;       /* layers that are persisted by threads of their own */
	bool sweep_wanted;    /* somebody waits for a gc */
	unsigned failures;    /* of gcs, one after the other: the store must be repaired */
	uint64_t gcs;         /* gc_count() when garbage was last found gone */
	bool unshrunk;        /* one has freed what the files have not given back */
	bool unreturned;      /* one has ended since memory was last given back */
	bool stop;
	pthread_t committer;
	bool started;
};

/* --- budget.c --------------------------------------------------------------------------- */

void layers_look_at_disk(struct layers *ls);
void layers_wake(struct layers *ls); /* the committer has something to do */

/* Part of garbage_min below which a gc is not worth its while. */
#define GARBAGE_IDLE 4

/* So many bytes became garbage at once. */
void layers_count_garbage(struct layers *ls, uint64_t bytes);

/* For `ms` at most, or for as long as it takes if negative.  lock held */
void layers_wait(struct layers *ls, pthread_cond_t *cond, int64_t ms);

/* --- committer.c ------------------------------------------------------------------------ */

void *committer_run(void *layers); /* a thread's own, until layers->stop */

/* --- sweep.c ---------------------------------------------------------------------------- */

/* It has appended so much that a gc must come before it is persisted. */
bool sweep_is_owed(const struct layer *l);

/* It has appended so much that it may write nothing before a gc. */
bool sweep_is_much(const struct layer *l);

/* What else the thread has to do between two steps of a gc.  lock held */
typedef void sweep_between_fn(struct layers *ls);

/* A gc, in steps.  With the lock, which it lets go of meanwhile; the committer's own. */
void sweep_run(struct layers *ls, bool shrink, sweep_between_fn *between);

/* How many ms until one is due, or -1.  lock held */
int64_t sweep_left(struct layers *ls);
