/*
 * Large promised files whose writers came before the capture had read them (stash-i.h). A copy is
 * made while its writer waits, even if another thread is reading the file; that thread finds that
 * the lease is gone and reads the copy.
 *
 * A writer may also come during the walk, or before the capture has its index. Then nobody knows
 * the promise yet, and its file is copied whatever its size, so that no writer waits for the end of
 * a walk. Such a copy is early: the capture that turns out to have made the promise takes it over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"
#include "engine/host/stash-i.h"

static struct stash_key key_of(const struct promising *c, const struct promise *one)
{
	return (struct stash_key){ c->all->host->dir, c->record.id, one->what.id };
}

/* lock held */
static bool may_copy(const struct promising *c, const struct promise *one)
{
	return !one->stashed && one->size >= STASH_MIN && !c->record.remote &&
	       (one->state == PROMISE_OPEN || one->state == PROMISE_BUSY);
}

/* lock held */
static void note(struct promising *c, struct promise *one)
{
	one->stashed = true;
	c->has_stash = true;
	promising_hurry(c, one);
}

/*
 * Half of what the store may still take is for captures: of what was copied, and of all else.  `copying` bytes
 * are being copied, this file's too.
 */
static bool is_within_limit(struct host *h, uint64_t copying)
{
	const uint64_t most = store_limit_left(h->store) / 2;
	uint64_t copied = 0;

	if (store_limit(h->store) == 0)
		return true;
	return stash_bytes(h->dir, &copied) >= 0 && copied < most && copying < most - copied;
}

/* lock held, but while it copies; the capture does not end meanwhile */
static int copy_one(struct promising *c, struct promise *one, int held)
{
	const struct stash_key key = key_of(c, one);
	struct promises *p = c->all;
	uint64_t copying;
	int r;

	c->foreground++;
	c->in_use++;
	c->in_hand++;
	copying = p->copying += one->size;
	pthread_mutex_unlock(&p->lock);
	r = is_within_limit(p->host, copying) ? stash_put(&key, held, one->size) : -ENOSPC;
	pthread_mutex_lock(&p->lock);
	p->copying -= one->size;
	c->foreground--;
	c->in_use--;
	c->in_hand--;
	pthread_cond_broadcast(&p->changed);
	if (r < 0)
		return r;
	if (one->state == PROMISE_OPEN || one->state == PROMISE_BUSY)
		note(c, one);
	else
		stash_drop(&key); /* it was captured meanwhile */
	return 0;
}

/* --- early copies ------------------------------------------------------------------------- */

/* lock held */
static int take_over(struct promising *c, struct promise *one)
{
	const struct stash_key key = key_of(c, one);
	const int r = stash_take_over(&key);

	if (r < 0)
		return r;
	c->has_early = true;
	if (one->state == PROMISE_OPEN || one->state == PROMISE_BUSY)
		note(c, one);
	else
		stash_drop(&key);
	return 0;
}

/* lock held, but while it copies */
static int copy_early(struct promises *p, const struct object_id *promise, int held)
{
	const struct stash_key key = { p->host->dir, stash_early, *promise };
	struct promising *c = NULL;
	struct promise *one;
	struct stat st;
	uint64_t copying;
	bool unused;
	int r;

	/* Whether the size is what was promised is seen when the copy is read. */
	if (fstat(held, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	copying = p->copying += (uint64_t)st.st_size;
	pthread_mutex_unlock(&p->lock);
	r = is_within_limit(p->host, copying) ? stash_put(&key, held, (uint64_t)st.st_size)
					      : -ENOSPC;
	pthread_mutex_lock(&p->lock);
	p->copying -= (uint64_t)st.st_size;
	if (r < 0)
		return r;
	p->early = true;
	one = promises_look_up(p, promise, &c, &unused);
	r = one ? take_over(c, one) : 0;
	/* The index may have taken it over; else its writer waits until the file is kept. */
	return r < 0 && !one->stashed ? r : 0;
}

struct early {
	struct object_id *list; /* owned */
	size_t n, cap;
};

static void early_done(struct early *e)
{
	free(e->list);
}

static int add_early(const struct object_id *promise, void *ctx)
{
	struct early *e = ctx;

	if (!VEC_ROOM(e->list, e->n, e->cap))
		return -ENOMEM;
	e->list[e->n++] = *promise;
	return 0;
}

/* A copy may be all that is left of a file, so none may be passed over. */
static int list_failed(int code, struct err *err)
{
	return err_set(err, code, "copies of files that changed cannot be listed: %s",
		       strerror(-code));
}

int promising_take_over(struct promising *c, struct err *err)
{
	CLEANUP(early_done) struct early e = { 0 };
	int r;

	if (!c->all->early || c->record.remote)
		return 0;
	r = stash_each(c->all->host->dir, &stash_early, add_early, &e);
	if (r < 0)
		return list_failed(r, err);
	for (size_t i = 0; i < e.n; i++) {
		const struct object_ref key = { .id = e.list[i], .kind = OBJECT_CHUNK };
		struct promise *one = map_get(&c->by_id, &key);

		r = one ? take_over(c, one) : 0;
		if (r < 0 && r != -ENOENT)
			return list_failed(r, err);
	}
	return 0;
}

void promises_drop_early(struct promises *p)
{
	CLEANUP(early_done) struct early e = { 0 };

	/* What is not listed now is dropped another time. */
	if (!p->early || stash_each(p->host->dir, &stash_early, add_early, &e) < 0)
		return;
	for (size_t i = 0; i < e.n; i++) {
		const struct stash_key key = { p->host->dir, stash_early, e.list[i] };

		stash_drop(&key);
	}
	p->early = false;
}

/* --- all of them -------------------------------------------------------------------------- */

int promises_stash(struct promises *p, const struct object_id *promise, int held)
{
	struct promising *c = NULL;
	struct promise *one;
	bool unknown;
	int r = -ENOENT;

	pthread_mutex_lock(&p->lock);
	one = promises_look_up(p, promise, &c, &unknown);
	if (one && may_copy(c, one))
		r = copy_one(c, one, held);
	else if (!one && (unknown || promises_are_beginning(p)) && !p->ending)
		r = copy_early(p, promise, held);
	pthread_mutex_unlock(&p->lock);
	return r;
}

int promising_open_stash(const struct promising *c, const struct promise *one)
{
	const struct stash_key key = key_of(c, one);

	return c->has_stash ? stash_open(&key, one->size) : -ENOENT;
}

void promising_drop_stash(struct promising *c, struct promise *one)
{
	const struct stash_key key = key_of(c, one);

	if (c->has_stash && (one->size >= STASH_MIN || c->has_early))
		stash_drop(&key);
}

static int find_one(const struct object_id *promise, void *ctx)
{
	const struct object_ref key = { .id = *promise, .kind = OBJECT_CHUNK };
	struct promising *c = ctx;
	struct promise *one = map_get(&c->by_id, &key);

	if (one && one->state == PROMISE_OPEN)
		note(c, one);
	return 0;
}

int promising_find_stash(struct promising *c, struct err *err)
{
	int r = stash_each(c->all->host->dir, &c->record.id, find_one, c);

	return r < 0 ? list_failed(r, err) : 0;
}

static int drop_one(const struct object_id *promise, void *ctx)
{
	const struct promising *c = ctx;
	const struct stash_key key = { c->all->host->dir, c->record.id, *promise };

	stash_drop(&key);
	return 0;
}

void promising_end_stash(struct promising *c)
{
	IGNORE_RESULT(stash_each(c->all->host->dir, &c->record.id, drop_one, c),
		      "the next start sweeps");
	stash_tidy(c->all->host->dir);
}

static bool is_known(const struct catalog_id *capture, void *ctx)
{
	const struct promises *p = ctx;
	const bool early = catalog_id_same(capture, &stash_early);

	for (const struct promising *c = p->first; c; c = c->after)
		if (!c->ended && (early || catalog_id_same(&c->record.id, capture)))
			return true;
	return false;
}

void promises_sweep_stash(struct promises *p)
{
	stash_sweep(p->host->dir, is_known, p);
}
