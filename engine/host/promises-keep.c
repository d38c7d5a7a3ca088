/*
 * A caller that needs a promised file reads it in its own thread. The bytes and their name in the
 * capture's record are one commit, so a kept promise outlives cowfsd: a writer of the project that
 * waited for it may continue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

/* Its writer may have come while it was read otherwise. */
static int read_stashed(struct promising *c, struct keeper *k, struct promise *one, struct err *err)
{
	AUTO_CLOSE int fd = promising_open_stash(c, one);

	if (keep_is_ours(fd)) /* the copy may be all that there is */
		return err_set(err, fd, "a copy cannot be opened: %s", strerror(-fd));
	return fd < 0 ? KEEP_LOST : keeper_read_copy(k, fd, &one->content, err);
}

int promising_read_one(struct promising *c, struct keeper *k, struct promise *one, struct err *err)
{
	AUTO_CLOSE int held = one->held ? promises_open_held(c->all, &one->what.id) : -ENOENT;
	AUTO_CLOSE int fd = -1;
	int r = KEEP_LOST;

	if (held >= 0)
		r = keeper_read_held(k, held, one->size, &one->content, err);
	if (r == KEEP_LOST)
		r = read_stashed(c, k, one, err);
	if (r != KEEP_LOST)
		return r;
	if (c->absent)
		return promising_is_absent(c, err);
	if (c->top < 0 || !one->path)
		err_set(err, -EIO, "was not captured before its project was gone");
	else
		r = keep_open(c->top, one->path, &fd, err);
	if (r == 0)
		r = keeper_read(k, fd, c->home, &c->record.id, &one->what.id, &one->content, err);
	if (r != KEEP_LOST)
		return r;
	one->why = strdup(err->msg);
	return one->why ? 0 : err_nomem(err);
}

/* Somebody waits for the bytes, so they are read even while cowfsd ends. */
static bool is_unneeded(void *ctx)
{
	struct promising *c = ctx;
	LOCKED(&c->all->lock);

	return c->unneeded;
}

static int read_alone(struct promising *c, struct promise *one, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(keeper_free_p) struct keeper *k = NULL;
	int r = batch_begin(c->all->host->store, &b, err);

	r = r < 0 ? r : keeper_new(b, is_unneeded, c, &k, err);
	r = r < 0 ? r : promising_read_one(c, k, one, err);
	return r < 0 ? r : promising_save(c, b, &one, 1, err);
}

/* lock held */
void promising_mark_done(struct promising *c, struct promise *one)
{
	one->state = one->why ? PROMISE_LOST : PROMISE_KEPT;
	c->done++;
	c->done_bytes += one->size;
	c->lost += one->why != NULL;
	if (one->why)
		log_warn("'%s/%s' %s", c->dir, one->path ? one->path : "?", one->why);
}

/* lock held, but while it reads */
static int keep_alone(struct promising *c, struct promise *one, struct err *err)
{
	struct promises *p = c->all;
	int r;

	one->state = PROMISE_BUSY;
	c->foreground++;
	c->in_use++;
	pthread_mutex_unlock(&p->lock);
	promises_linger("SNAPCOW_KEEP_PAUSE");
	r = read_alone(c, one, err);
	if (r >= 0)
		promising_drop_held(c, &one, 1);
	pthread_mutex_lock(&p->lock);
	c->foreground--;
	c->in_use--;
	if (r >= 0) {
		promising_mark_done(c, one);
	} else {
		free(TAKE_PTR(one->why));
		one->state = PROMISE_OPEN;
	}
	pthread_cond_broadcast(&p->changed);
	return r;
}

/* lock held, but while it reads.  1: another thread has it in hand; it commits early, but is not waited for. */
static int keep_locked(struct promises *p, const struct object_id *id, bool wait,
		       struct content *ret, struct err *err)
{
	struct promising *c = NULL;
	struct promise *one;
	int r;

	for (;;) {
		one = promises_find(p, id, &c);
		if (!one)
			return err_set(err, -ESTALE, "nobody knows what was promised here");
		switch (one->state) {
		case PROMISE_KEPT:
			*ret = one->content;
			return 0;
		case PROMISE_LOST:
			return err_set(err, -EIO, "'%s' %s", one->path ? one->path : "a file",
				       one->why);
		case PROMISE_BUSY:
			c->hasty = true;
			if (!wait)
				return 1;
			pthread_cond_wait(&p->changed, &p->lock);
			break;
		case PROMISE_OPEN:
			r = c->record.remote ? promising_await(c, one, err)
					     : keep_alone(c, one, err);
			if (r < 0)
				return r;
		}
	}
}

int promises_keep(const struct object_id *promise, struct content *ret, void *ctx, struct err *err)
{
	struct promises *p = ctx;
	int r;

	pthread_mutex_lock(&p->lock);
	r = keep_locked(p, promise, true, ret, err);
	pthread_mutex_unlock(&p->lock);
	return r;
}

int promises_keep_now(struct promises *p, const struct object_id *promise, bool wait,
		      struct err *err)
{
	struct content unused;
	LOCKED(&p->lock);

	return keep_locked(p, promise, wait, &unused, err);
}
