/*
 * thread.h - private to fuse/: threads that no signal reaches.
 *
 * Other threads of the process handle signals; a thread that answers programs must not be
 * interrupted by a handler.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* `name` shows in ps(1), 15 bytes at most; `stack` in bytes.  0 or a negative errno. */
NODISCARD int thread_start(pthread_t *ret, const char *name, size_t stack, void *(*run)(void *),
			   void *arg);

uint64_t thread_now(void); /* nanoseconds on a clock that never goes back */
uint64_t thread_cpu(void); /* of processor time that this thread has had */

/* A condition whose waits are bounded by thread_now(). */
void thread_cond_init(pthread_cond_t *cond);

/* Wait until `deadline`; 0 or -ETIMEDOUT. */
NODISCARD int thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
				     uint64_t deadline);
