/*
 * One set holds files for all captures, while a capture begins or runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "engine/host/holding-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"
#include "snapshot/capture/lease.h"

/* A capture that is still at its walk has no promises yet. */
static bool is_beginning(struct promises *p)
{
	bool any;

	pthread_mutex_lock(&p->lock);
	any = promises_are_beginning(p) && !p->ending;
	pthread_mutex_unlock(&p->lock);
	return any;
}

/* -EDQUOT: the store's limit, which can be raised while its daemon runs. */
static bool may_pass(int code)
{
	return code == -ENOSPC || code == -EDQUOT || keep_is_ours(code);
}

/*
 * For a writer that waits, in a thread of the leases, which others need as well: it does not wait until another
 * thread commits the file, except at the end, when nobody asks again.
 */
static int keep_now(void *ctx, const struct object_id *promise, uint64_t waited_ms)
{
	struct promises *p = ctx;
	/* Asked first: the walk may end, and make its promises known, while this one is looked for. */
	const bool beginning = is_beginning(p);
	AUTO_CLOSE int held = promises_open_held(p, promise);
	struct err err = { 0 };
	int r;

	if (held >= 0 && promises_stash(p, promise, held) == 0)
		return 0;
	/* Whether it is promised is not known yet, and whoever writes to it now would change it. */
	if (promises_may_turn_up(p, promise))
		return waited_ms < PROMISES_PATIENCE_MS ? -EAGAIN : -ESTALE;
	r = promises_keep_now(p, promise, !p->holding, &err);
	if (r > 0)
		return -EAGAIN;
	if (r == -ECANCELED)
		return -ESTALE; /* nobody needs it any more */
	if (r == -ESTALE)
		return beginning ? -EAGAIN : r;
	/* Where one has waited for room in vain, the next need not, until a file finds some. */
	if (r == 0)
		p->full = false;
	if (may_pass(r) && !p->full && waited_ms < PROMISES_PATIENCE_MS)
		return -EAGAIN;
	if (r == -ENOSPC || r == -EDQUOT)
		p->full = true;
	if (r < 0)
		log_warn("a file that is about to be written to was not captured: %s", err.msg);
	return r == -EAGAIN ? -EIO : r;
}

/* For tests, which need files that change before they are captured. */
static bool may_hold(const struct promises *p)
{
	const char *hold = getenv("SNAPCOW_LAZY_HOLD");

	return !p->ending && !(hold && strcmp(hold, "no") == 0);
}

static void make_holding(struct promises *p)
{
	LOCKED(&p->lock);

	if (!p->holding && may_hold(p))
		p->holding = holding_new(keep_now, p);
}

uint64_t promises_descriptors(void)
{
	return LEASES_FILES;
}

int promises_lease(void *ctx, int fd, struct lease_trial *ret)
{
	struct promises *p = ctx;
	struct holding *h;
	int r;

	if (!p->holding)
		make_holding(p);
	h = promises_borrow(p);
	r = h ? holding_try(h, fd, ret) : leases_try(NULL, fd, false, ret);

	promises_give_back(p);
	return r;
}

bool promises_hold(void *ctx, const struct object_id *promise, int fd, uint64_t size,
		   const struct lease_trial *t)
{
	struct holding *h = promises_borrow(ctx);
	/* A walk that is repeated meets what is held, by another descriptor. */
	const bool taken = h && holding_add(h, promise, fd, size, t) == 0;

	promises_give_back(ctx);
	return taken;
}

static bool hold_again(struct promising *c, const struct promise *one)
{
	const struct object_key *key = store_key(c->all->host->store);
	const struct object_id *id = &one->what.id;
	struct err ignored = { 0 };
	struct lease_trial trial;
	AUTO_CLOSE int fd = -1;

	if (c->top < 0 || !one->path || keep_open(c->top, one->path, &fd, &ignored) != 0 ||
	    !lease_possible(fd) || promises_lease(c->all, fd, &trial) < 0 ||
	    !keep_is_promised(key, fd, c->home, &c->record.id, id) ||
	    !promises_hold(c->all, id, fd, one->size, &trial))
		return false;
	fd = -1;
	return true;
}

void promising_hold(struct promising *c)
{
	struct holding *h = promises_borrow(c->all);
	size_t n = 0;
	/* Far fewer files are held than promised. */
	AUTO_FREE struct object_id *list = h ? holding_list(h, &n) : NULL;
	struct promise *one;

	for (size_t i = 0; i < n; i++) {
		const struct object_ref key = { .id = list[i], .kind = OBJECT_CHUNK };

		one = map_get(&c->by_id, &key);
		if (one)
			one->held = one->state == PROMISE_OPEN;
	}
	/* Without memory for the list any of them may be. */
	for (size_t pos = 0; h && !list && (one = map_next(&c->by_id, &pos));)
		one->held = one->state == PROMISE_OPEN;
	for (size_t pos = 0; c->recovered && (one = map_next(&c->by_id, &pos));)
		if (one->state == PROMISE_OPEN && !one->held)
			one->held = hold_again(c, one);
	promises_give_back(c->all);
}

/* lock held; whatever is promised now stands in an index */
static bool all_indexed(const struct promises *p)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (!c->indexed && promising_is_open(c))
			return false;
	return !promises_are_beginning(p);
}

/* lock held */
static bool is_promised(const struct promises *p, const struct object_id *id)
{
	const struct object_ref key = { .id = *id, .kind = OBJECT_CHUNK };

	for (const struct promising *c = p->first; c; c = c->after)
		if (!c->unneeded && map_get(&c->by_id, &key))
			return true;
	return false;
}

void promises_drop_unpromised(struct promises *p)
{
	struct holding *h = promises_borrow(p);
	size_t n = 0, unpromised = 0;
	/* Listed first: a walk that begins after this holds files that are not in the list. */
	AUTO_FREE struct object_id *list = h ? holding_list(h, &n) : NULL;

	pthread_mutex_lock(&p->lock);
	if (!all_indexed(p))
		n = 0;
	else
		promises_drop_early(p);
	for (size_t i = 0; i < n; i++)
		if (!is_promised(p, &list[i]))
			list[unpromised++] = list[i];
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < unpromised; i++)
		holding_drop(h, &list[i]);
	promises_give_back(p);
}

/* lock held */
static bool is_needed(const struct promises *p)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (promising_is_open(c))
			return true;
	return promises_are_beginning(p);
}

void promises_hold_no_more(struct promises *p, bool whatever)
{
	struct holding *h = NULL;

	pthread_mutex_lock(&p->lock);
	if (whatever || !is_needed(p)) {
		h = atomic_exchange(&p->holding, NULL);
		p->taken_away++;
		while (h && p->borrowed > 0)
			pthread_cond_wait(&p->changed, &p->lock);
		p->taken_away--;
	}
	pthread_mutex_unlock(&p->lock);
	holding_free(h);
}
