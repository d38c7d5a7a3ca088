#include "cowfs/core/ahead-i.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

#define QUEUE 16 /* calls that may wait */

struct wish {
	struct object_ref list[AHEAD_MAX];
	size_t n;
};

struct ahead {
	struct cache *cache;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock; /* guards what follows; a leaf */
	pthread_cond_t work;
	struct wish queue[QUEUE]; /* a ring: the oldest at `first` */
	unsigned first, n;
	bool stop;
};

static void load_all(struct ahead *a, const struct wish *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct cached *o = NULL;

		if (cache_load(a->cache, w->list[i].kind, &w->list[i].id, &o, NULL) >= 0)
			cached_unref(o);
	}
}

static void *run(void *arg)
{
	struct ahead *a = arg;
	struct wish w;

	pthread_mutex_lock(&a->lock);
	for (;;) {
		while (a->n == 0 && !a->stop)
			pthread_cond_wait(&a->work, &a->lock);
		if (a->stop)
			break;
		w = a->queue[a->first];
		a->first = (a->first + 1) % QUEUE;
		a->n--;
		pthread_mutex_unlock(&a->lock);
		load_all(a, &w);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* If the queue is full, its oldest wishes are out of date: their reader has moved on. */
void ahead_want(struct ahead *a, const struct object_ref *list, size_t n)
{
	struct wish *w;

	assert(n <= AHEAD_MAX);
	if (n == 0)
		return;
	LOCKED(&a->lock);
	if (a->n == QUEUE) {
		a->first = (a->first + 1) % QUEUE;
		a->n--;
	}
	w = &a->queue[(a->first + a->n) % QUEUE];
	memcpy(w->list, list, n * sizeof(*list));
	w->n = n;
	if (a->n++ == 0)
		pthread_cond_signal(&a->work);
}

int ahead_new(struct cache *c, struct ahead **ret, struct err *err)
{
	struct ahead *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return err_nomem(err);
	a->cache = c;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, NULL);
	rc = pthread_create(&a->thread, NULL, run, a);
	if (rc != 0) {
		ahead_free(a);
		return err_set(err, -rc, "no thread to read ahead: %s", strerror(rc));
	}
	a->started = true;
	*ret = a;
	return 0;
}

void ahead_free(struct ahead *a)
{
	if (!a)
		return;
	if (a->started) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->work);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
	}
	pthread_cond_destroy(&a->work);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
