/*
 * Files are held while a capture begins or is under way, by one set for all captures.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/host/holding-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define BEGIN_MS 20

/* A capture that is still at its walk has no promises yet.  False if there is none. */
static bool await_beginning(struct promises *p)
{
	bool any;

	pthread_mutex_lock(&p->lock);
	any = p->beginning > 0 && !p->ending;
	if (any)
		promises_wait_ms(p, BEGIN_MS);
	pthread_mutex_unlock(&p->lock);
	return any;
}

/* For a writer that waits, in a thread of the leases. */
static int keep_now(void *ctx, const struct object_id *promise)
{
	struct promises *p = ctx;
	struct content unused;
	struct err err = { 0 };
	int r;

	do
		r = promises_keep(promise, &unused, p, &err);
	while (r == -ESTALE && await_beginning(p));
	if (r < 0 && r != -ESTALE)
		log_warn("a file that is about to be written to was not captured: %s", err.msg);
	return r;
}

/* For tests, which need files that change before they are captured. */
static bool may_hold(const struct promises *p)
{
	const char *hold = getenv("SNAPCOW_LAZY_HOLD");

	return !p->ending && !(hold && strcmp(hold, "no") == 0);
}

/* NULL: there is none.  give_back() what this returned. */
static struct holding *borrow(struct promises *p, bool make)
{
	struct holding *h;

	pthread_mutex_lock(&p->lock);
	if (!p->holding && make && may_hold(p))
		p->holding = holding_new(keep_now, p);
	h = p->holding;
	p->borrowed += h != NULL;
	pthread_mutex_unlock(&p->lock);
	return h;
}

static void give_back(struct promises *p, const struct holding *h)
{
	pthread_mutex_lock(&p->lock);
	p->borrowed -= h != NULL;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

int promises_hold(void *ctx, const struct object_id *promise, int fd, uint64_t size)
{
	struct holding *h = borrow(ctx, true);
	int r = h ? holding_add(h, promise, fd, size) : -ENOTSUP;

	give_back(ctx, h);
	return r == -EEXIST ? 0 : r; /* a walk that is repeated meets it again */
}

void promises_let_go(void *ctx, const struct object_id *promise)
{
	struct holding *h = borrow(ctx, false);

	if (h)
		holding_forget(h, promise);
	give_back(ctx, h);
}

int promises_open_held(struct promises *p, const struct object_id *promise)
{
	struct holding *h = borrow(p, false);
	int fd = h ? holding_open(h, promise) : -ENOENT;

	give_back(p, h);
	return fd;
}

void promises_drop_held(struct promises *p, struct promise **list, size_t n)
{
	struct holding *h = borrow(p, false);

	for (size_t i = 0; h && i < n; i++)
		holding_drop(h, &list[i]->what.id);
	give_back(p, h);
}

/* lock held */
static bool is_needed(const struct promises *p)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (!c->ended)
			return true;
	return p->beginning > 0;
}

void promises_hold_no_more(struct promises *p, bool whatever)
{
	struct holding *h = NULL;

	pthread_mutex_lock(&p->lock);
	if (whatever || !is_needed(p)) {
		h = TAKE_PTR(p->holding);
		while (h && p->borrowed > 0)
			pthread_cond_wait(&p->changed, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	holding_free(h);
}
