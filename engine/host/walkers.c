#include "engine/host/walkers-i.h"

#include <assert.h>
#include <errno.h>

#include "base/vec.h"
#include "engine/host/walker-process-i.h"

void walkers_init(struct walkers *w, pthread_mutex_t *lock, pthread_cond_t *changed,
		  walkers_ended_fn ended, void *ctx)
{
	*w = (struct walkers){ .lock = lock, .changed = changed, .ended = ended, .ctx = ctx };
	for (size_t i = 0; i < WALKERS_MAX; i++)
		w->list[i].all = w;
}

/* Its thread has nothing left to do but to return. */
static void join(struct walkers_one *one)
{
	if (one->joinable)
		pthread_join(one->thread, NULL);
	one->joinable = false;
}

void walkers_done(struct walkers *w)
{
	assert(walkers_count(w) == 0);
	for (size_t i = 0; i < WALKERS_MAX; i++)
		join(&w->list[i]);
}

size_t walkers_count(const struct walkers *w)
{
	size_t n = 0;

	for (size_t i = 0; i < WALKERS_MAX; i++)
		n += w->list[i].place != NULL;
	return n;
}

static const struct walkers_one *find_walker(const struct walkers *w, const void *place)
{
	return VEC_FIND(it, w->list, WALKERS_MAX, it->place == place);
}

bool walkers_in(const struct walkers *w, const void *place)
{
	return find_walker(w, place) != NULL;
}

static void *wait_for_end(void *arg)
{
	struct walkers_one *one = arg;
	struct walkers *w = one->all;
	const void *place;
	bool whole;

	walker_await(one->pid);
	LOCKED(w->lock);
	whole = walker_reap(one->pid);
	place = one->place;
	one->place = NULL;
	w->ended(w->ctx, place, whole);
	pthread_cond_broadcast(w->changed);
	return NULL;
}

int walkers_begin(struct walkers *w, const void *place, const char *store, int tree, bool ahead)
{
	struct walkers_one *one = NULL;
	int r;

	assert(!walkers_in(w, place));
	for (size_t i = 0; i < WALKERS_MAX && !one; i++)
		one = w->list[i].place ? NULL : &w->list[i];
	if (!one)
		return -EBUSY;
	join(one);
	r = walker_start(store, tree, ahead, &one->pid);
	if (r < 0)
		return r;
	one->place = place;
	r = -pthread_create(&one->thread, NULL, wait_for_end, one);
	one->joinable = r == 0;
	if (r == 0)
		return 0;
	one->place = NULL;
	walker_kill(one->pid);
	walker_await(one->pid);
	walker_reap(one->pid);
	return r;
}

void walkers_kill(struct walkers *w, const void *place)
{
	const struct walkers_one *one = find_walker(w, place);

	if (one)
		walker_kill(one->pid);
}
