#include "base/spread.h"

#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

/* Where this process may run: its first thread is never begun by us. */
static bool get_allowed(cpu_set_t *ret)
{
	return sched_getaffinity(getpid(), sizeof(*ret), ret) == 0 && CPU_COUNT(ret) > 1;
}

static void let_go(pthread_t thread)
{
	cpu_set_t allowed;

	if (get_allowed(&allowed))
		pthread_setaffinity_np(thread, sizeof(allowed), &allowed);
}

static void *begin(void *ctx)
{
	struct spread *s = ctx;

	let_go(pthread_self());
	return s->run(s->arg);
}

/* The nth from the caller's, in a circle; -1: there is only one. */
static int find_processor(unsigned nth)
{
	cpu_set_t allowed;
	int cpu = sched_getcpu();

	if (cpu < 0 || !get_allowed(&allowed))
		return -1;
	for (nth %= (unsigned)CPU_COUNT(&allowed); nth > 0; nth--)
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &allowed));
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
	if (rc == 0)
		rc = pthread_create(&s->thread, &attr, begin, s);
	pthread_attr_destroy(&attr);
	return -rc;
}

int spread_start(struct spread *s, unsigned nth, void *(*run)(void *), void *arg)
{
	const int cpu = find_processor(nth);

	*s = (struct spread){ .run = run, .arg = arg };
	if (cpu >= 0 && start_on(s, cpu) == 0)
		return 0;
	/* Nowhere else, or that one has just been taken away. */
	return -pthread_create(&s->thread, NULL, run, arg);
}

void spread_join(struct spread *s)
{
	/* It may not have begun, behind somebody who does not let it: then elsewhere. */
	let_go(s->thread);
	pthread_join(s->thread, NULL);
}
