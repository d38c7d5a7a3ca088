/*
 * warm-spares-i.h - the warm clones that wait to be taken; shared by the files of warm-clone-i.h.
 */
#pragma once

#include <pthread.h>

#include "cowfs/fuse/mount.h"
#include "engine/host/habit-i.h"
#include "engine/host/others-i.h"
#include "engine/host/takers-i.h"
#include "engine/host/walkers-i.h"
#include "engine/host/warm-clone-i.h"
#include "engine/host/warm-make-i.h"

#define SPARES_MAX 32

struct spare {
	struct layer *layer; /* owned, with `mount` */
	struct mount *mount;
	unsigned walks; /* completed ones: the first reads names, the second small files */
	bool begun;     /* the first has been, so the kernel knows some names at least */
	bool due;       /* the next one is to come */
	bool cut;       /* its walker was ended early, so cowfsd must be quiet first */
	uint64_t made;  /* engine_clock_ms() */
};

struct warm_clone {
	struct host *host;

	pthread_mutex_t lock; /* guards what follows; no other lock is taken while it is held */
	pthread_cond_t changed;
	pthread_t thread;
	bool started, ending;
	bool hopeless; /* warm clones do not work here */
	struct warm_clone_wish wish;
	size_t announced; /* of those that are wished for: somebody needs so many now */
	struct habit habit;

	struct spare spares[SPARES_MAX]; /* all of one root, oldest first */
	size_t n;
	struct object_id root;
	struct catalog_id snapshot;
	struct walkers walkers; /* each in the spare that has this layer */
	struct others others;
	struct takers takers;
	unsigned rests; /* callers that must not be disturbed */
	uint64_t asked; /* engine_clock_ms() when somebody last wanted or took one */
	uint64_t taken;
};

/* Is what is there of another root than what is wished for?  lock held */
bool warm_is_stale(const struct warm_clone *s);
