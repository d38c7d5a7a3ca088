/*
 * spread.h - threads that work at the same time, each begun on a processor of its own.
 *
 * The kernel picks a processor when a thread starts, and seldom again: a thread queued behind its
 * creator may wait for milliseconds while another processor is idle.
 * These begin on the processors next to the caller's, and go where the kernel likes from then on.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct spread {
	pthread_t thread;
	void *(*run)(void *);
	void *arg;
	pthread_mutex_t lock; /* guards what follows */
	bool placed;          /* on one processor, until it has begun */
	uint64_t allowed[16]; /* where it may go then, a bit for each: where the caller may */
};

/*
 * The `nth` beside the caller's own thread; 0 begins wherever the kernel likes.  `s` must stay where
 * it is.  0 or a negative errno.
 */
NODISCARD int spread_start(struct spread *s, unsigned nth, void *(*run)(void *), void *arg);

/* Wait for its end. */
void spread_join(struct spread *s);
