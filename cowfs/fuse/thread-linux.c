#include "cowfs/fuse/thread.h"

#include <assert.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

int thread_start(pthread_t *ret, const char *name, size_t stack, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return -rc;
	rc = pthread_attr_setstacksize(&attr, stack);
	assert(rc == 0);

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		pthread_setname_np(*ret, name);
	return -rc;
}

uint64_t thread_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

int thread_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline)
{
	const struct timespec t = {
		.tv_sec = (time_t)(deadline / 1000000000),
		.tv_nsec = (long)(deadline % 1000000000),
	};

	return -pthread_cond_timedwait(cond, lock, &t);
}
