/*
 * The threads of a capture each read many files before they commit. While others read, they wait;
 * when somebody waits for one of their files, they commit early. One of them makes the index first,
 * and settles at the end.
 *
 * Programs at work in a clone need the processors as well: listing a new clone of 80,000 names took
 * three times as long beside two threads that read. So these pause while mounts are in use, unless
 * somebody waits for the end. Files that nobody holds may change meanwhile, so the pauses end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/spread.h"
#include "base/sys.h"
#include "cowfs/fuse/meter.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define GROUP_FILES 2048
#define GROUP_BYTES ((uint64_t)16 << 20)
#define ALONE_MIN   ((uint64_t)1 << 20) /* such a file takes long, and no other waits for it */
#define READERS_MAX 4
#define PAUSE_MS    20    /* while others read */
#define LOOK_MS     2     /* of work between two looks at what mounts are asked */
#define BUSY        8     /* requests since then that make a mount one that is in use */
#define QUIET_MS    4     /* of a pause, before the next look */
#define QUIET_MAX   25    /* such pauses, */
#define TURN_MS     10    /* and so long a turn after them */
#define STUCK_MS    2000  /* before another attempt */
#define DAMAGED_MS  30000 /* the same, if what is promised cannot be read in the store */

/* What a thread has read and not yet committed. */
struct group {
	struct promise *list[GROUP_FILES];
	size_t n, max;
	uint64_t bytes;
};

/*
 * For tests, which need a capture that does not go on by itself: while the file that
 * SNAPCOW_LAZY_PAUSE names is there, files are read one by one, and none beyond the number that it
 * holds.
 */
static FILE *open_pause(void)
{
	const char *path = getenv("SNAPCOW_LAZY_PAUSE");

	return path ? fopen(path, "re") : NULL;
}

static bool is_paused(const struct promising *c)
{
	unsigned long after = 0;
	FILE *f = open_pause();

	if (!f)
		return false;
	if (fscanf(f, "%lu", &after) != 1)
		after = 0;
	fclose(f);
	return c->done >= after;
}

static bool is_one_by_one(void)
{
	FILE *f = open_pause();

	if (f)
		fclose(f);
	return f != NULL;
}

/* A lazy fetch has one: what it notes of digests is not shared. */
static unsigned count_readers(bool remote)
{
	const unsigned n = remote || is_one_by_one() ? 1 : sys_processors();

	return n < READERS_MAX ? n : READERS_MAX;
}

/* Whoever needs a file of the group waits until it is committed, and so for all that joins it. */
static bool fits(const struct group *g, const struct promise *one)
{
	return g->n == 0 || (one->size < ALONE_MIN && g->bytes + one->size <= GROUP_BYTES);
}

/* lock held */
static struct promise *next_here(struct promising *c, const struct group *g)
{
	struct promise *one = promising_next_here(c);

	if (!one || fits(g, one))
		return one;
	if (c->next > 0 && c->list[c->next - 1] == one)
		c->next--;
	return NULL;
}

/* lock held; the next one in the list, or NULL.  One that could not be read a moment ago is tried again. */
static struct promise *next_listed(const struct promising *c, const struct group *g)
{
	if (c->next < c->n)
		return fits(g, c->list[c->next]) ? c->list[c->next] : NULL;
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i]->state == PROMISE_OPEN && fits(g, c->list[i]))
			return c->list[i];
	return NULL;
}

/* lock held; NULL: none is open that fits into the group */
static struct promise *next_open(struct promising *c, const struct group *g)
{
	struct promise *one;

	if (c->record.remote)
		return next_here(c, g);
	while (c->next < c->n && c->list[c->next]->state != PROMISE_OPEN)
		c->next++;
	/* What nobody holds may be lost any moment, so it comes before what somebody waits for. */
	one = c->next < c->n && !c->list[c->next]->held ? NULL : promising_next_hurried(c);
	if (!one)
		return next_listed(c, g);
	if (fits(g, one))
		return one;
	promising_hurry(c, one);
	return NULL;
}

/* lock held; is there room for more, and nobody else to go first? */
static bool may_go_on(const struct promising *c, const struct group *g)
{
	return !promising_is_over(c) && (!c->hasty || g->n == 0) && c->foreground == 0 &&
	       g->n < g->max && g->bytes < GROUP_BYTES;
}

/* When a thread looks again whether programs are at work in clones. */
struct pace {
	uint64_t due_ms, requests;
	unsigned pauses; /* in a row */
};

/* lock held, but while it pauses; true: it did, and much may have changed. */
static bool pause_for_mounts(struct promises *p, struct pace *pace)
{
	const uint64_t now = engine_clock_ms();
	bool busy;

	if (now < pace->due_ms || p->awaited > 0)
		return false;
	busy = meter_total() - pace->requests > BUSY;
	pace->requests = meter_total();
	if (!busy || pace->pauses == QUIET_MAX) {
		pace->due_ms = now + (busy ? TURN_MS : LOOK_MS);
		pace->pauses = 0;
		return false;
	}
	pace->pauses++;
	promises_wait_ms(p, QUIET_MS);
	return true;
}

static bool is_in_vain(void *ctx)
{
	struct promising *c = ctx;

	promises_linger("SNAPCOW_READ_PAUSE");
	LOCKED(&c->all->lock);
	return promising_is_over(c);
}

/* Those that were read stay busy until they are saved. */
static int read_group(struct promising *c, struct batch *b, struct group *g, struct err *err)
{
	CLEANUP(keeper_free_p) struct keeper *k = NULL;
	struct pace pace = { .due_ms = engine_clock_ms() + LOOK_MS, .requests = meter_total() };
	struct promises *p = c->all;
	struct promise *one;
	int r = keeper_new(b, is_in_vain, c, &k, err);

	if (r < 0)
		return r;
	g->max = is_one_by_one() ? 1 : GROUP_FILES;
	pthread_mutex_lock(&p->lock);
	while (may_go_on(c, g)) {
		if (pause_for_mounts(p, &pace))
			continue;
		one = next_open(c, g);
		if (!one)
			break;
		one->state = PROMISE_BUSY;
		if (c->n_wanted > 0)
			pthread_cond_broadcast(&p->changed); /* somebody may wait for this one */
		pthread_mutex_unlock(&p->lock);
		r = c->record.remote ? promising_fetch_one(c, b, one, err)
				     : promising_read_one(c, k, one, err);
		pthread_mutex_lock(&p->lock);
		if (r < 0) {
			one->state = PROMISE_OPEN;
			break;
		}
		g->list[g->n++] = one;
		g->bytes += one->size;
	}
	pthread_mutex_unlock(&p->lock);
	return r == -EAGAIN && c->record.remote ? 0 : r; /* it comes again */
}

static void take_back(struct promising *c, struct group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(TAKE_PTR(g->list[i]->why));
		g->list[i]->state = PROMISE_OPEN;
	}
	c->next = 0;
}

static int save_group(struct promising *c, struct batch *b, struct group *g, struct err *err)
{
	struct promises *p = c->all;
	int r = g->n > 0 ? promising_save(c, b, g->list, g->n, err) : 0;

	if (r >= 0)
		promising_drop_held(c, g->list, g->n);
	pthread_mutex_lock(&p->lock);
	if (r < 0)
		take_back(c, g);
	c->hasty = false; /* whoever still waits says so again */
	for (size_t i = 0; r >= 0 && i < g->n; i++)
		promising_mark_done(c, g->list[i]);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (r >= 0)
		promising_tell(c);
	return r;
}

/* Read some and save them.  0 if there was none. */
static int keep_some(struct promising *c, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	AUTO_FREE struct group *g = calloc(1, sizeof(*g));
	int read, r;

	if (!g)
		return err_nomem(err);
	r = batch_begin(c->all->host->store, &b, err);
	if (r < 0)
		return r;
	read = read_group(c, b, g, err);
	r = save_group(c, b, g, read < 0 ? NULL : err);
	return read < 0 ? read : r < 0 ? r : g->n > 0;
}

/* lock held; somebody reads for himself, or a test holds us */
static void give_way(struct promising *c)
{
	struct promises *p = c->all;

	for (unsigned i = 0; c->foreground > 0 && !promising_is_over(c) && i < STUCK_MS / PAUSE_MS;
	     i++)
		promises_wait_ms(p, PAUSE_MS);
	while (!promising_is_over(c) && is_paused(c))
		promises_wait_ms(p, PAUSE_MS);
}

/* One of the threads that read. */
struct reading {
	struct promising *c;
	struct spread thread;
	struct err err;
	int r;
};

static void *read_many(void *arg)
{
	struct reading *one = arg;
	struct promising *c = one->c;
	struct promises *p = c->all;

	pthread_mutex_lock(&p->lock);
	do {
		give_way(c);
		if (promising_is_over(c))
			break;
		pthread_mutex_unlock(&p->lock);
		one->r = keep_some(c, &one->err);
		pthread_mutex_lock(&p->lock);
	} while (one->r > 0);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Until none is open, or one of the threads fails. */
static int read_all(struct promising *c, struct err *err)
{
	struct reading list[READERS_MAX] = { { .c = c } };
	const unsigned most = count_readers(c->record.remote != 0);
	unsigned n = 1;
	int r = 0;

	for (; n < most; n++) {
		list[n].c = c;
		if (spread_start(&list[n].thread, n, read_many, &list[n]) < 0)
			break;
	}
	read_many(&list[0]);
	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			spread_join(&list[i].thread);
		if (list[i].r < 0 && r == 0) {
			r = list[i].r;
			*err = list[i].err;
		}
	}
	return r;
}

/* Store what has come, and wait for more. */
static int fetch_some(struct promising *c, struct err *err)
{
	struct promises *p = c->all;
	int r = c->supply ? 0 : promising_open_supply(c, err);

	if (r < 0 && r != -ENODATA)
		return r;
	r = read_all(c, err);
	pthread_mutex_lock(&p->lock);
	if (r < 0)
		c->completed = UINT64_MAX; /* a large file that failed is tried again */
	else if (c->done < c->n && !promising_is_over(c))
		r = promising_await_news(c, err);
	pthread_mutex_unlock(&p->lock);
	return r;
}

/* The lock is free.  1 if all is read. */
static int read_on(struct promising *c, struct err *err)
{
	struct promises *p = c->all;
	bool done, over;
	int r;

	pthread_mutex_lock(&p->lock);
	give_way(c);
	done = c->done == c->n;
	over = promising_is_over(c);
	pthread_mutex_unlock(&p->lock);
	if (over)
		return 0;
	if (done)
		return 1;
	/* Not before the index is used: programs may wait for that. */
	r = c->sorted ? 0 : promising_sort(c, err);
	if (r < 0)
		return r;
	if (c->record.remote)
		return fetch_some(c, err);
	r = c->absent ? promising_find_top(c, err) : 0;
	return r < 0 ? r : read_all(c, err);
}

static void *sift(void *arg)
{
	promises_linger("SNAPCOW_HEIRS_PAUSE");
	promising_sift_heirs(arg);
	return NULL;
}

/*
 * The heirs are sifted while files are read: a file that nobody holds can be lost until it is read, and status only
 * counts too many snapshots until they are.
 */
static void begin_sifting(struct promising *c)
{
	if (!c->sifting && !c->sifted)
		c->sifting = spread_start(&c->sifter, 0, sift, c) == 0;
}

static void end_sifting(struct promising *c)
{
	if (c->sifting)
		spread_join(&c->sifter);
	c->sifting = false;
}

/* The lock is free.  1 if the capture has ended. */
static int go_on(struct promising *c, struct err *err)
{
	int r;

	begin_sifting(c);
	promises_drop_unpromised(c->all);
	r = read_on(c, err);
	if (r <= 0)
		return r;
	/* Not after the end: the heirs name no promise any more then. */
	end_sifting(c);
	if (!c->sifted)
		promising_sift_heirs(c);
	r = promising_settle(c, err);
	return r < 0 ? r : 1;
}

/* lock held, but while it works.  1 if the capture has ended. */
static int step(struct promising *c, struct err *err)
{
	struct promises *p = c->all;
	const bool unneeded = c->unneeded;
	int r = 1, taken;

	pthread_mutex_unlock(&p->lock);
	if (!unneeded)
		r = c->indexed ? go_on(c, err) : promising_index(c, err);
	if (r >= 0 && c->told_ms == 0)
		promising_tell(c);
	if (unneeded) {
		end_sifting(c);
		promising_tell_dropped(c);
	} else if (r > 0) {
		promising_tell_end(c);
	}
	pthread_mutex_lock(&p->lock);
	if (c->indexed || r < 0 || unneeded)
		return r;
	taken = promising_take_over(c, err);
	c->indexed = taken >= 0;
	return taken < 0 ? taken : r;
}

/* lock held, but while it waits; what happens to others does not shorten it. */
static void rest(struct promising *c, int code)
{
	const bool damaged = !c->indexed && code == -EBADMSG;
	const uint64_t until = engine_clock_ms() + (damaged ? DAMAGED_MS : STUCK_MS);

	while (!promising_is_over(c) && engine_clock_ms() < until)
		promises_wait_ms(c->all, PAUSE_MS);
}

/* lock held, but while it waits: whoever has a promise of it in hand must let it go first */
static void drop(struct promising *c)
{
	while (c->in_use > 0)
		pthread_cond_wait(&c->all->changed, &c->all->lock);
	log_info("'%s' is not %s any further: nobody needs it", promising_name(c),
		 c->from ? "fetched" : "captured");
	c->lost = 0;
	for (size_t i = 0; i < c->n; i++)
		c->list[i]->state = PROMISE_OPEN;
}

void *promising_run(void *arg)
{
	struct promising *c = arg;
	struct promises *p = c->all;
	struct map kept = { 0 };
	struct err err = { 0 };
	int r;

	pthread_mutex_lock(&p->lock);
	r = step(c, &err);
	for (;;) {
		if (r < 0 && c->stuck.code == 0 && r != -ECANCELED)
			log_warn("%s '%s': %s, trying again", c->from ? "fetching" : "capturing",
				 promising_name(c), err.msg);
		c->stuck = r < 0 ? err : (struct err){ 0 };
		pthread_cond_broadcast(&p->changed);
		if (p->ending || r > 0)
			break;
		if (r < 0)
			rest(c, r);
		if (p->ending)
			break;
		err = (struct err){ 0 };
		r = step(c, &err);
	}
	if (r > 0 && c->unneeded)
		drop(c);
	else if (r > 0)
		log_info("'%s' is %s: %llu files, %llu of them lost", promising_name(c),
			 c->from ? "fetched" : "captured", (unsigned long long)c->n,
			 (unsigned long long)c->lost);
	/* Whoever waited for the last of them looks at it once more. */
	while (r > 0 && c->in_hand > 0)
		pthread_cond_wait(&p->changed, &p->lock);
	c->ended = r > 0;
	if (c->ended)
		kept = promising_forget_kept(c);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	end_sifting(c);
	if (c->ended && c->record.remote)
		promising_end_remote(c);
	if (c->ended && c->has_stash)
		promising_end_stash(c);
	promises_hold_no_more(p, false);
	promising_free_kept(&kept);
	return NULL;
}
