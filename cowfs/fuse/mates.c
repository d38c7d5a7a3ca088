#include "cowfs/fuse/mates.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cowfs/fuse/thread.h"

#define STACK     ((size_t)256 << 10)
#define NEWS_MAX  65536 /* news in the queue; beyond that, writers are slowed down, */
#define SLOW_NS   100000000ull
#define SETTLE_NS 10000000000ull

struct mate_news {
	struct mate_news *next;
	uint64_t node; /* a directory, if there is a name */
	char name[];   /* "": the node itself, with its pages or listing */
};

/* --- the thread of one mount -------------------------------------------------------------- */

static struct mate_news *next_news(struct mates *a)
{
	struct mate_news *news;

	LOCKED(&a->lock);
	a->telling = false;
	pthread_cond_broadcast(&a->change);
	while (a->first == NULL && !a->ending)
		pthread_cond_wait(&a->change, &a->lock);
	news = a->first;
	if (news != NULL) {
		a->first = news->next;
		a->last = a->first != NULL ? a->last : NULL;
		a->n--;
		a->telling = true;
	}
	return news;
}

static void *notify_kernel(void *arg)
{
	struct mount *m = arg;
	struct mate_news *news;

	while ((news = next_news(&m->mates)) != NULL) {
		int r = news->name[0] != '\0' ? wire_expire(m, news->node, news->name)
					      : wire_invalidate(m, news->node, false);

		if (r < 0 && !atomic_load(&m->ended))
			log_debug("announcing a change on '%s' failed with %d", m->path, -r);
		free(news);
	}
	return NULL;
}

/* The last one waiting says the same: writes come in rows. */
static bool is_told(const struct mates *a, uint64_t node, const char *name)
{
	return a->last != NULL && a->last->node == node && strcmp(a->last->name, name) == 0;
}

static void push(struct mates *a, uint64_t node, const char *name)
{
	struct mate_news *news = malloc(sizeof(*news) + strlen(name) + 1);

	if (news == NULL) {
		log_error("out of memory: a mount may show what is no longer so");
		return;
	}
	*news = (struct mate_news){ .node = node };
	memcpy(news->name, name, strlen(name) + 1);
	LOCKED(&a->lock);
	/* Bounded by time: the thread may wait for a request that waits for this very reader. */
	if (a->n >= NEWS_MAX)
		IGNORE_RESULT(thread_cond_wait_until(&a->change, &a->lock, thread_now() + SLOW_NS),
			      "then the list grows");
	if (is_told(a, node, name)) {
		free(news);
	} else {
		*(a->last != NULL ? &a->last->next : &a->first) = news;
		a->last = news;
		a->n++;
		pthread_cond_broadcast(&a->change);
	}
}

static void drain(struct mates *a)
{
	const uint64_t deadline = thread_now() + SETTLE_NS;
	int r = 0;

	pthread_mutex_lock(&a->lock);
	while ((a->first != NULL || a->telling) && r == 0)
		r = thread_cond_wait_until(&a->change, &a->lock, deadline);
	pthread_mutex_unlock(&a->lock);
	if (r < 0)
		log_warn("the kernel takes no news of a shared mount, continuing");
}

static int begin(struct mount *m, struct err *err)
{
	struct mates *a = &m->mates;
	int r;

	pthread_mutex_init(&a->lock, NULL);
	thread_cond_init(&a->change);
	a->telling = true; /* until the thread looks for the first time */
	r = thread_start(&a->thread, "snap-mates", STACK, notify_kernel, m);
	if (r >= 0)
		return 0;
	pthread_cond_destroy(&a->change);
	pthread_mutex_destroy(&a->lock);
	return err_set(err, r, "cannot start a thread");
}

static void end(struct mount *m)
{
	struct mates *a = &m->mates;

	pthread_mutex_lock(&a->lock);
	a->ending = true;
	pthread_cond_broadcast(&a->change);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->change);
	pthread_mutex_destroy(&a->lock);
	*a = (struct mates){ 0 };
}

/* --- all of them -------------------------------------------------------------------------- */

static int join(struct mount *m, struct err *err)
{
	struct mounts *all = m->all;
	int r = m->mates.joined ? 0 : begin(m, err);

	if (r < 0 || m->mates.joined)
		return r;
	m->mates.joined = true;
	m->mates.next = all->mates;
	all->mates = m;
	atomic_fetch_add(&all->n_mates, 1);
	return 0;
}

int mates_join(struct mount *m, struct mount *beside, struct err *err)
{
	int r;

	pthread_rwlock_wrlock(&m->all->mates_lock);
	r = join(beside, err);
	r = r < 0 ? r : join(m, err);
	pthread_rwlock_unlock(&m->all->mates_lock);
	return r;
}

void mates_leave(struct mount *m)
{
	struct mounts *all = m->all;
	struct mount **at = &all->mates;

	pthread_rwlock_wrlock(&all->mates_lock);
	if (!m->mates.joined) {
		pthread_rwlock_unlock(&all->mates_lock);
		return;
	}
	while (*at != m)
		at = &(*at)->mates.next;
	*at = m->mates.next;
	m->mates.joined = false;
	atomic_fetch_sub(&all->n_mates, 1);
	pthread_rwlock_unlock(&all->mates_lock);
	end(m);
}

static void push_all(struct mount *m, uint64_t node, const char *name)
{
	for (struct mount *o = m->all->mates; o != NULL; o = o->mates.next)
		if (o != m && o->layer == m->layer)
			push(&o->mates, node, name);
}

void mates_tell(struct mount *m, const void *bytes)
{
	struct wire_change changes[WIRE_CHANGES_MAX];
	size_t n;

	if (atomic_load_explicit(&m->all->n_mates, memory_order_relaxed) == 0)
		return;
	n = wire_changes(bytes, changes);
	if (n == 0)
		return;
	pthread_rwlock_rdlock(&m->all->mates_lock);
	for (size_t i = 0; i < n; i++)
		push_all(m, changes[i].node, changes[i].name);
	pthread_rwlock_unlock(&m->all->mates_lock);
}

void mates_announce(struct mount *m, const struct layer_changes *changes)
{
	pthread_rwlock_rdlock(&m->all->mates_lock);
	for (size_t i = 0; i < changes->n_names; i++)
		push_all(m, changes->names[i].dir, changes->names[i].name);
	for (size_t i = 0; i < changes->n_dirs; i++)
		push_all(m, changes->dirs[i], "");
	pthread_rwlock_unlock(&m->all->mates_lock);
}

void mates_settle(struct mount *m)
{
	pthread_rwlock_rdlock(&m->all->mates_lock);
	for (struct mount *o = m->all->mates; o != NULL; o = o->mates.next)
		if (o != m && o->layer == m->layer)
			drain(&o->mates);
	pthread_rwlock_unlock(&m->all->mates_lock);
}

bool mates_all(struct mount *m, bool (*is)(struct mount *m, const void *ctx), const void *ctx)
{
	bool all = is(m, ctx);

	if (!all || atomic_load(&m->all->n_mates) == 0)
		return all;
	pthread_rwlock_rdlock(&m->all->mates_lock);
	for (struct mount *o = m->all->mates; o != NULL && all; o = o->mates.next)
		all = o == m || o->layer != m->layer || is(o, ctx);
	pthread_rwlock_unlock(&m->all->mates_lock);
	return all;
}
