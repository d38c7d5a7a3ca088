/*
 * walkers-i.h - the running walkers (walker-process-i.h): a bounded number at once, each in another
 * warm clone.
 *
 * A thread for each waits for its end, so nobody else has to. Call all functions with the owner's
 * lock held. A walker is reaped under that lock, so one that is found here may be killed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/lock.h"

#define WALKERS_MAX 2

/* A walker that was in `place` has ended; `whole`: it read everything.  The lock is held. */
typedef void (*walkers_ended_fn)(void *ctx, const void *place, bool whole);

struct walkers_one {
	struct walkers *all;
	const void *place; /* the warm clone; NULL: none walks */
	pid_t pid;
	pthread_t thread;
	bool joinable; /* `thread` is still to be joined */
};

struct walkers {
	pthread_mutex_t *lock; /* borrowed, like `changed`, which is broadcast when one has ended */
	pthread_cond_t *changed;
	walkers_ended_fn ended;
	void *ctx;
	struct walkers_one list[WALKERS_MAX];
};

void walkers_init(struct walkers *w, pthread_mutex_t *lock, pthread_cond_t *changed,
		  walkers_ended_fn ended, void *ctx);

/* The lock is not held and none walks any more. */
void walkers_done(struct walkers *w);

size_t walkers_count(const struct walkers *w);
bool walkers_in(const struct walkers *w, const void *place);

/* walker_start() in a place where none walks.  -EBUSY if there are WALKERS_MAX. */
NODISCARD int walkers_begin(struct walkers *w, const void *place, const char *store, int tree,
			    bool ahead);

/* It ends soon; `ended` is called then.  If none walks there, nothing happens. */
void walkers_kill(struct walkers *w, const void *place);
