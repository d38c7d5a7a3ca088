/*
 * lock.h - hold a mutex until the scope ends.
 *
 * LOCKED(&s->lock); takes it where it stands.  Locals declared before it are released after the
 * mutex, those declared after it before.
 */
#pragma once

#include <pthread.h>

#include "base/cleanup.h"

static inline pthread_mutex_t *lock_take(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}

static inline void lock_give(pthread_mutex_t *const *m)
{
	pthread_mutex_unlock(*m);
}

#define LOCKED(m) \
	CLEANUP(lock_give) __attribute__((unused)) pthread_mutex_t *const locked_ = lock_take(m)
