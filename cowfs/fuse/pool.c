#include "cowfs/fuse/pool.h"

#include <assert.h>
#include <stdbool.h>

#include "base/sys.h"
#include "cowfs/fuse/platform.h"
#include "cowfs/fuse/thread.h"

#define WORKER_STACK   ((size_t)1 << 20)
#define WORKER_IDLE_NS 5000000000ull
#define SHORT_MIN      4 /* threads that short jobs may have at once, or a CPU each if that is more */
#define PATIENT_MAX    28 /* threads that patient jobs may have: they only wait */
#define KEEP           2  /* threads that stay, in case none can be made when one is needed */

struct lane {
	struct job *first, **last;
	unsigned queued, running, max;
};

struct pool {
	pthread_mutex_t lock; /* of all that follows; never held while a job runs */
	pthread_cond_t work;  /* there is something to take, or the end */
	pthread_cond_t gone;  /* the last worker has gone */
	struct lane lanes[POOL_LANES];
	unsigned workers, idle;
	unsigned called; /* of the idle ones, those that were signalled and have not come yet */
	bool ending;
};

/* Patient jobs leave one thread to the short ones. */
static bool may_take(const struct pool *p, enum pool_lane lane)
{
	const struct lane *l = &p->lanes[lane];

	if (l->first == NULL || l->running == l->max)
		return false;
	return lane == POOL_SHORT || l->running + 1 < p->workers || p->ending;
}

static struct job *take_job(struct pool *p, enum pool_lane *ret_lane)
{
	for (enum pool_lane i = 0; i < POOL_LANES; i++) {
		struct lane *l = &p->lanes[i];
		struct job *j = l->first;

		if (!may_take(p, i))
			continue;
		l->first = j->next;
		if (l->first == NULL)
			l->last = &l->first;
		l->queued--;
		l->running++;
		*ret_lane = i;
		return j;
	}
	return NULL;
}

/* False once the pool ends, or if nothing came for long. */
static bool wait_for_work(struct pool *p)
{
	const uint64_t until = thread_now() + WORKER_IDLE_NS;
	int r = 0;

	if (p->ending)
		return false;
	p->idle++;
	if (p->workers <= KEEP)
		pthread_cond_wait(&p->work, &p->lock);
	else
		r = thread_cond_wait_until(&p->work, &p->lock, until);
	p->idle--;
	if (p->called > 0) {
		p->called--;
		return true;
	}
	return r == 0 || p->workers <= KEEP;
}

static void *worker_main(void *arg)
{
	struct pool *p = arg;
	enum pool_lane lane;
	struct job *j;

	platform_serve_thread();
	pthread_mutex_lock(&p->lock);
	do {
		while ((j = take_job(p, &lane)) != NULL) {
			pthread_mutex_unlock(&p->lock);
			j->run(j);
			pthread_mutex_lock(&p->lock);
			p->lanes[lane].running--;
		}
	} while (wait_for_work(p));

	p->workers--;
	if (p->workers == 0)
		pthread_cond_signal(&p->gone);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int add_worker(struct pool *p)
{
	pthread_t thread;
	int r;

	r = thread_start(&thread, "snap-worker", WORKER_STACK, worker_main, p);
	if (r < 0)
		return r;
	pthread_detach(thread);
	p->workers++;
	return 0;
}

int pool_new(struct pool **ret, struct err *err)
{
	CLEANUP(pool_free_p) struct pool *p = calloc(1, sizeof(*p));
	const unsigned cpus = sys_processors();
	int r;

	if (p == NULL)
		return err_nomem(err);
	pthread_mutex_init(&p->lock, NULL);
	thread_cond_init(&p->work);
	thread_cond_init(&p->gone);
	for (enum pool_lane i = 0; i < POOL_LANES; i++)
		p->lanes[i].last = &p->lanes[i].first;
	p->lanes[POOL_SHORT].max = cpus > SHORT_MIN ? cpus : SHORT_MIN;
	p->lanes[POOL_PATIENT].max = PATIENT_MAX;

	for (unsigned i = 0; i < KEEP; i++) {
		pthread_mutex_lock(&p->lock);
		r = add_worker(p);
		pthread_mutex_unlock(&p->lock);
		if (r < 0)
			return err_set(err, r, "cannot start a thread");
	}
	*ret = TAKE_PTR(p);
	return 0;
}

void pool_free(struct pool *p)
{
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->work);
	while (p->workers > 0)
		pthread_cond_wait(&p->gone, &p->lock);
	pthread_mutex_unlock(&p->lock);
	pthread_cond_destroy(&p->gone);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Threads for all that there is to do at once, and the one that patient jobs leave. */
static unsigned workers_wanted(const struct pool *p)
{
	unsigned n = 1;

	for (enum pool_lane i = 0; i < POOL_LANES; i++) {
		const struct lane *l = &p->lanes[i];
		const unsigned jobs = l->queued + l->running;

		n += jobs < l->max ? jobs : l->max;
	}
	return n;
}

void pool_add(struct pool *p, enum pool_lane lane, struct job *j)
{
	struct lane *l = &p->lanes[lane];

	j->next = NULL;
	pthread_mutex_lock(&p->lock);
	assert(!p->ending);
	*l->last = j;
	l->last = &j->next;
	l->queued++;
	/* Where no thread can be made, one of those that are there will take it. */
	while (p->workers < workers_wanted(p) && add_worker(p) == 0)
		continue;
	if (p->idle > p->called) {
		p->called++;
		pthread_cond_signal(&p->work);
	}
	pthread_mutex_unlock(&p->lock);
}
