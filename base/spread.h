/*
 * spread.h - threads that work at the same time, each begun on a processor of its own.
 *
 * The kernel looks for a place when a thread starts, and seldom again: one that was put in line
 * behind who made it may wait there for milliseconds while another processor has nothing to do.
 * These begin on the processors next to the caller's, and go where the kernel likes from then on.
 */
#pragma once

#include <pthread.h>

#include "base/attr.h"

struct spread {
	pthread_t thread;
	void *(*run)(void *);
	void *arg;
};

/* The `nth` beside the caller's own thread, from 1; `s` must stay.  0 or a negative errno. */
NODISCARD int spread_start(struct spread *s, unsigned nth, void *(*run)(void *), void *arg);

/* Wait for its end. */
void spread_join(struct spread *s);
