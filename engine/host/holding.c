#include "engine/host/holding-i.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/map.h"
#include "engine/find/engine-i.h"

/* The background reads small files first, so it is the large ones that wait for long. */
#define LARGE      ((uint64_t)64 << 10)
#define SMALL_PART 2 /* small files have at most this fraction of the leases */

struct leased {
	uint64_t key; /* the lease's: the beginning of the promise, which is a hash */
	struct object_id promise;
	uint64_t broken; /* engine_clock_ms() when its writer was first seen; 0: none was */
};

struct holding {
	struct leases *leases;
	holding_keep_fn keep;
	void *ctx;
	size_t max;

	pthread_mutex_t lock; /* guards what follows; a leaf */
	struct map by_key;    /* struct leased, owned */
	_Atomic size_t n;     /* of them; read without the lock */
};

static uint64_t key_of(const struct object_id *promise)
{
	uint64_t key;

	memcpy(&key, promise->b, sizeof(key));
	return key;
}

static void forget(struct holding *h, uint64_t key)
{
	struct leased *one;

	pthread_mutex_lock(&h->lock);
	one = map_remove(&h->by_key, &key);
	h->n = h->by_key.n;
	pthread_mutex_unlock(&h->lock);
	free(one);
}

static int take_descriptor(void *ctx, uint64_t key, int fd)
{
	struct holding *h = ctx;
	const uint64_t now = engine_clock_ms();
	struct object_id promise = { 0 };
	uint64_t waited = 0;
	struct leased *one;
	int r = -ENOENT;

	(void)fd; /* holding_open() finds it for the thread that keeps the promise */
	pthread_mutex_lock(&h->lock);
	one = map_get(&h->by_key, &key);
	if (one) {
		promise = one->promise;
		if (one->broken == 0)
			one->broken = now;
		waited = now - one->broken;
	}
	pthread_mutex_unlock(&h->lock);
	if (one)
		r = h->keep(h->ctx, &promise, waited);
	if (r != -EAGAIN)
		forget(h, key);
	return r;
}

struct holding *holding_new(holding_keep_fn keep, void *ctx)
{
	struct holding *h = calloc(1, sizeof(*h));
	const struct leases_options options = { .take = take_descriptor, .ctx = h };

	if (!h)
		return NULL;
	h->keep = keep;
	h->ctx = ctx;
	h->by_key = MAP_INIT(map_hash_u64, map_equal_u64);
	pthread_mutex_init(&h->lock, NULL);
	if (leases_open(&options, &h->leases, NULL) >= 0) {
		h->max = leases_room(h->leases);
		return h;
	}
	pthread_mutex_destroy(&h->lock);
	free(h);
	return NULL;
}

void holding_free(struct holding *h)
{
	struct leased *one;

	if (!h)
		return;
	leases_close(h->leases);
	for (size_t pos = 0; (one = map_next(&h->by_key, &pos));)
		free(one);
	map_done(&h->by_key);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Known before it is leased, so that its break finds it. */
static int enter(struct holding *h, const struct object_id *promise, uint64_t size)
{
	struct leased *one;
	void *other;
	int r;

	if (size < LARGE && h->n >= h->max / SMALL_PART)
		return -EMFILE;
	LOCKED(&h->lock);
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	*one = (struct leased){ .key = key_of(promise), .promise = *promise };
	r = map_add(&h->by_key, &one->key, one, &other);
	h->n = h->by_key.n;
	if (r == 0)
		return 0;
	free(one);
	return r < 0 ? r : -EEXIST;
}

/* Large files have room left when small ones have none, but which it is nobody knows yet. */
int holding_try(struct holding *h, int fd, struct lease_trial *ret)
{
	return leases_try(h->leases, fd, h->n < h->max / SMALL_PART, ret);
}

int holding_add(struct holding *h, const struct object_id *promise, int fd, uint64_t size,
		const struct lease_trial *t)
{
	const uint64_t key = key_of(promise);
	int r = enter(h, promise, size);

	if (r < 0)
		return r;
	r = leases_add(h->leases, key, fd, t);
	if (r < 0)
		forget(h, key);
	return r;
}

void holding_drop(struct holding *h, const struct object_id *promise)
{
	const uint64_t key = key_of(promise);

	IGNORE_RESULT(leases_drop(h->leases, key),
		      "the bytes are stored, or lost for another reason");
	forget(h, key);
}

struct object_id *holding_list(struct holding *h, size_t *ret_n)
{
	struct object_id *list;
	const struct leased *one;
	size_t n = 0;
	LOCKED(&h->lock);

	list = calloc(h->by_key.n + 1, sizeof(*list));
	for (size_t pos = 0; list && (one = map_next(&h->by_key, &pos));)
		list[n++] = one->promise;
	*ret_n = n;
	return list;
}

bool holding_has(struct holding *h, const struct object_id *promise)
{
	const uint64_t key = key_of(promise);
	LOCKED(&h->lock);

	return map_get(&h->by_key, &key) != NULL;
}

int holding_open(struct holding *h, const struct object_id *promise)
{
	/* A lease may outlive what it was for by a moment, and says nothing then. */
	return holding_has(h, promise) ? leases_dup(h->leases, key_of(promise)) : -ENOENT;
}
