#include "cowfs/fuse/watchdog.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "cowfs/fuse/mount-i.h"
#include "cowfs/fuse/request.h"
#include "cowfs/fuse/thread.h"

#define STACK ((size_t)128 << 10)

struct watchdog {
	uint64_t limit; /* nanoseconds */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of all that follows; a mount's lock may be taken under it */
	pthread_cond_t change;
	struct mount *first;
	bool ending;
};

static uint64_t hung_for(struct mount *m, uint64_t now)
{
	const uint64_t begun = atomic_load(&m->begun);
	const uint64_t reading = begun != 0 && now > begun ? now - begun : 0;
	const uint64_t pooled = request_stalled(m, now);

	return reading > pooled ? reading : pooled;
}

static void abort_hung_mounts(struct watchdog *w, uint64_t now)
{
	for (struct mount *m = w->first; m != NULL; m = m->watched.after) {
		const uint64_t ns = hung_for(m, now);

		if (ns <= w->limit || atomic_load(&m->ended))
			continue;
		log_error("mount '%s' has not answered for %u s: ending its connection", m->path,
			  (unsigned)(ns / 1000000000));
		mount_abort(m);
	}
}

static void *watchdog_main(void *arg)
{
	struct watchdog *w = arg;
	const uint64_t step = w->limit / 4;

	LOCKED(&w->lock);
	while (!w->ending) {
		const uint64_t next = thread_now() + step;
		uint64_t now;

		if (w->first == NULL) {
			pthread_cond_wait(&w->change, &w->lock);
			continue;
		}
		if (thread_cond_wait_until(&w->change, &w->lock, next) == 0)
			continue;
		/* A debugger or SIGSTOP stops the whole process: the time since then proves no hang. */
		now = thread_now();
		if (now - next < step)
			abort_hung_mounts(w, now);
	}
	return NULL;
}

int watchdog_new(unsigned limit_ms, struct watchdog **ret, struct err *err)
{
	CLEANUP(watchdog_free_p) struct watchdog *w = calloc(1, sizeof(*w));
	int r;

	if (w == NULL)
		return err_nomem(err);
	w->limit = (uint64_t)limit_ms * 1000000;
	pthread_mutex_init(&w->lock, NULL);
	thread_cond_init(&w->change);
	r = thread_start(&w->thread, "snap-watchdog", STACK, watchdog_main, w);
	if (r < 0)
		return err_set(err, r, "cannot start a thread");
	w->started = true;
	*ret = TAKE_PTR(w);
	return 0;
}

void watchdog_free(struct watchdog *w)
{
	if (w == NULL)
		return;
	assert(w->first == NULL);
	if (w->started) {
		pthread_mutex_lock(&w->lock);
		w->ending = true;
		pthread_cond_signal(&w->change);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->change);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void watchdog_add(struct watchdog *w, struct mount *m)
{
	LOCKED(&w->lock);
	m->watched = (struct watched){ .after = w->first };
	if (w->first == NULL)
		pthread_cond_signal(&w->change);
	else
		w->first->watched.before = m;
	w->first = m;
}

void watchdog_remove(struct watchdog *w, struct mount *m)
{
	LOCKED(&w->lock);
	if (m->watched.before != NULL)
		m->watched.before->watched.after = m->watched.after;
	else
		w->first = m->watched.after;
	if (m->watched.after != NULL)
		m->watched.after->watched.before = m->watched.before;
}
