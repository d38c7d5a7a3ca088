#include "base/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "base/spread.h"
#include "base/sys.h"

/* Things for a thread that are worth starting it. */
#define SHARE_MIN 32

struct crew {
	crew_fn fn;
	void *ctx;
	size_t n;
	_Atomic size_t next;
	_Atomic bool failed;
	pthread_mutex_t lock;
	struct err failure; /* guarded by it; the first */
};

struct member {
	struct crew *crew;
	unsigned number;
	struct spread thread;
};

static void fail(struct crew *c, int code, const struct err *err)
{
	LOCKED(&c->lock);
	if (!c->failed) {
		c->failure = *err;
		c->failure.code = code;
	}
	c->failed = true;
}

static void *run_worker(void *ctx)
{
	struct member *m = ctx;
	struct crew *c = m->crew;
	size_t i;

	while (!c->failed && (i = atomic_fetch_add(&c->next, 1)) < c->n) {
		struct err err = { 0 };
		int r = c->fn(m->number, i, c->ctx, &err);

		if (r < 0)
			fail(c, r, &err);
	}
	return NULL;
}

unsigned crew_size(size_t n)
{
	const size_t most = n / SHARE_MIN;
	unsigned threads;

	if (most <= 1)
		return 1;
	threads = sys_processors();
	if (threads > CREW_MAX)
		threads = CREW_MAX;
	return threads > most ? (unsigned)most : threads;
}

int crew_each(unsigned threads, size_t n, crew_fn fn, void *ctx, struct err *err)
{
	struct crew c = { .fn = fn, .ctx = ctx, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct member members[CREW_MAX];
	unsigned started;

	for (unsigned i = 0; i < CREW_MAX; i++)
		members[i] = (struct member){ .crew = &c, .number = i };
	for (started = 1; started < threads && started < CREW_MAX; started++)
		if (spread_start(&members[started].thread, started, run_worker, &members[started]) <
		    0)
			break;
	run_worker(&members[0]);
	while (started > 1)
		spread_join(&members[--started].thread);
	pthread_mutex_destroy(&c.lock);
	if (c.failed && err)
		*err = c.failure;
	return c.failure.code;
}
