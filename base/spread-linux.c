#include "base/spread.h"

#include <sched.h>
#include <string.h>

#include "base/lock.h"

_Static_assert(sizeof(cpu_set_t) == sizeof(((struct spread *)NULL)->allowed),
	       "both are masks of the same processors");

/* While `placed` is set and the lock is held it has not ended, so its name is no one else's. */
static void let_go(struct spread *s)
{
	cpu_set_t allowed;

	LOCKED(&s->lock);
	if (s->placed) {
		memcpy(&allowed, s->allowed, sizeof(allowed));
		pthread_setaffinity_np(s->thread, sizeof(allowed), &allowed);
	}
	s->placed = false;
}

static void *begin(void *ctx)
{
	struct spread *s = ctx;

	let_go(s);
	return s->run(s->arg);
}

/* The nth from the caller's, in a circle; -1: there is no other. */
static int find_processor(const cpu_set_t *allowed, unsigned nth)
{
	int cpu = sched_getcpu();

	nth %= (unsigned)CPU_COUNT(allowed);
	if (cpu < 0 || nth == 0)
		return -1;
	for (; nth > 0; nth--)
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, allowed));
	return cpu;
}

static int start_on(struct spread *s, int cpu)
{
	pthread_attr_t attr;
	cpu_set_t one;
	int rc;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	rc = pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	if (rc == 0) {
		/* It waits for its name, which may be set after it runs. */
		pthread_mutex_lock(&s->lock);
		rc = pthread_create(&s->thread, &attr, begin, s);
		s->placed = rc == 0;
		pthread_mutex_unlock(&s->lock);
	}
	pthread_attr_destroy(&attr);
	return -rc;
}

int spread_start(struct spread *s, unsigned nth, void *(*run)(void *), void *arg)
{
	cpu_set_t allowed;
	int cpu = -1;

	*s = (struct spread){ .run = run, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER };
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
		memcpy(s->allowed, &allowed, sizeof(allowed));
		cpu = find_processor(&allowed, nth);
	}
	if (cpu >= 0 && start_on(s, cpu) == 0)
		return 0;
	/* Nowhere else, or that one has just been taken away. */
	return -pthread_create(&s->thread, NULL, run, arg);
}

void spread_join(struct spread *s)
{
	/* It may still queue behind a busy thread: let it begin on any processor. */
	let_go(s);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
}
