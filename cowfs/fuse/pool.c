#include "cowfs/fuse/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "base/lock.h"
#include "base/sys.h"
#include "cowfs/fuse/platform.h"
#include "cowfs/fuse/thread.h"

#define WORKER_STACK   ((size_t)1 << 20)
#define WORKER_IDLE_NS 5000000000ull
#define SHORT_MIN      4 /* threads that short jobs may have at once, or a CPU each if that is more */
#define PATIENT_MAX    28 /* threads that patient jobs may have: they only wait */
#define KEEP           2  /* threads that stay, in case none can be made when one is needed */

/* The jobs of one member in one lane. */
struct share {
	struct job *first, **last;
	unsigned queued, running;
	struct pool_member *next; /* of those that have something queued */
};

struct pool_member {
	struct pool *pool;
	struct share shares[POOL_LANES];
	bool left; /* it goes with its last job */
};

struct lane {
	struct pool_member *first, **last; /* that have something queued; whose turn it is, first */
	unsigned running, max, max_each;
	unsigned wanted;   /* jobs that could run if there were threads without end */
	unsigned unserved; /* members that have something queued and nothing running */
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

/* Members wait for each other only as far as they have threads already. */
static bool may_take(const struct pool *p, enum pool_lane lane, const struct share *s)
{
	const struct lane *l = &p->lanes[lane];

	if (s->running > 0 && (s->running >= l->max_each || l->running >= l->max))
		return false;
	/* Patient jobs leave one thread to the short ones. */
	return lane == POOL_SHORT || l->running + 1 < p->workers || p->ending;
}

static void append_member(struct lane *l, struct pool_member *m, struct share *s)
{
	s->next = NULL;
	*l->last = m;
	l->last = &s->next;
}

static struct job *pop_job(struct lane *l, struct share *s)
{
	struct job *j = s->first;

	s->first = j->next;
	if (s->first == NULL)
		s->last = &s->first;
	s->queued--;
	if (s->running++ == 0)
		l->unserved--;
	l->running++;
	return j;
}

/* Of the first member that may have one more; it is the last then. */
static struct job *take_from(struct pool *p, enum pool_lane lane, struct pool_member **ret_member)
{
	struct lane *l = &p->lanes[lane];

	for (struct pool_member **at = &l->first; *at != NULL; at = &(*at)->shares[lane].next) {
		struct pool_member *m = *at;
		struct share *s = &m->shares[lane];
		struct job *j;

		if (!may_take(p, lane, s))
			continue;
		*at = s->next;
		if (*at == NULL)
			l->last = at;
		j = pop_job(l, s);
		if (s->queued > 0)
			append_member(l, m, s);
		*ret_member = m;
		return j;
	}
	return NULL;
}

static struct job *take_job(struct pool *p, enum pool_lane *ret_lane,
			    struct pool_member **ret_member)
{
	struct job *j = NULL;

	for (enum pool_lane i = 0; i < POOL_LANES && j == NULL; i++) {
		j = take_from(p, i, ret_member);
		*ret_lane = i;
	}
	return j;
}

static bool has_jobs(const struct pool_member *m)
{
	for (enum pool_lane i = 0; i < POOL_LANES; i++)
		if (m->shares[i].queued + m->shares[i].running > 0)
			return true;
	return false;
}

static void end_job(struct pool *p, enum pool_lane lane, struct pool_member *m)
{
	struct lane *l = &p->lanes[lane];
	struct share *s = &m->shares[lane];

	l->running--;
	s->running--;
	if (s->queued + s->running < l->max_each)
		l->wanted--;
	if (s->running == 0 && s->queued > 0)
		l->unserved++;
	if (m->left && !has_jobs(m))
		free(m);
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

static void *worker_main(void *arg);

static int add_worker(struct pool *p)
{
	pthread_t thread;
	int r = thread_start(&thread, "snap-worker", WORKER_STACK, worker_main, p);

	if (r < 0)
		return r;
	pthread_detach(thread);
	p->workers++;
	return 0;
}

/* Threads for all that there is to do at once, and the one that patient jobs leave. */
static unsigned workers_wanted(const struct pool *p)
{
	unsigned n = 1;

	for (enum pool_lane i = 0; i < POOL_LANES; i++) {
		const struct lane *l = &p->lanes[i];
		const unsigned jobs = l->wanted < l->max ? l->wanted : l->max;

		n += jobs > l->running + l->unserved ? jobs : l->running + l->unserved;
	}
	return n;
}

/* Where no thread can be made, one of those that are there will take what there is to do. */
static void add_workers(struct pool *p)
{
	while (p->workers < workers_wanted(p) && add_worker(p) == 0)
		continue;
}

static void call_idle(struct pool *p)
{
	if (p->idle == p->called)
		return;
	p->called++;
	pthread_cond_signal(&p->work);
}

static bool is_something_left(const struct pool *p)
{
	for (enum pool_lane i = 0; i < POOL_LANES; i++)
		for (const struct pool_member *m = p->lanes[i].first; m; m = m->shares[i].next)
			if (may_take(p, i, &m->shares[i]))
				return true;
	return false;
}

/* What a thread took need not be what it was called for, nor what its last job had kept from others. */
static void pass_on(struct pool *p)
{
	add_workers(p);
	if (p->idle > p->called && is_something_left(p))
		call_idle(p);
}

static void *worker_main(void *arg)
{
	struct pool *p = arg;
	struct pool_member *m;
	enum pool_lane lane;
	struct job *j;

	platform_serve_thread();
	pthread_mutex_lock(&p->lock);
	do {
		while ((j = take_job(p, &lane, &m)) != NULL) {
			pass_on(p);
			pthread_mutex_unlock(&p->lock);
			j->run(j);
			pthread_mutex_lock(&p->lock);
			end_job(p, lane, m);
		}
	} while (wait_for_work(p));

	p->workers--;
	if (p->workers == 0)
		pthread_cond_signal(&p->gone);
	pthread_mutex_unlock(&p->lock);
	return NULL;
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
	p->lanes[POOL_SHORT].max_each = p->lanes[POOL_SHORT].max;
	p->lanes[POOL_PATIENT].max = PATIENT_MAX;
	p->lanes[POOL_PATIENT].max_each = PATIENT_MAX / 2;

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

int pool_join(struct pool *p, struct pool_member **ret)
{
	struct pool_member *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->pool = p;
	for (enum pool_lane i = 0; i < POOL_LANES; i++)
		m->shares[i].last = &m->shares[i].first;
	*ret = m;
	return 0;
}

void pool_leave(struct pool_member *m)
{
	struct pool *p;
	bool busy;

	if (m == NULL)
		return;
	p = m->pool;
	pthread_mutex_lock(&p->lock);
	m->left = true;
	busy = has_jobs(m);
	pthread_mutex_unlock(&p->lock);
	if (!busy)
		free(m);
}

static void push_job(struct lane *l, struct pool_member *m, struct share *s, struct job *j)
{
	if (s->queued + s->running == 0)
		l->unserved++;
	if (s->queued + s->running < l->max_each)
		l->wanted++;
	if (s->queued == 0)
		append_member(l, m, s);
	j->next = NULL;
	*s->last = j;
	s->last = &j->next;
	s->queued++;
}

void pool_add(struct pool_member *m, enum pool_lane lane, struct job *j)
{
	struct pool *p = m->pool;

	LOCKED(&p->lock);
	assert(!p->ending);
	push_job(&p->lanes[lane], m, &m->shares[lane], j);
	add_workers(p);
	call_idle(p);
}
