/*
 * sweep.c - automatic garbage collection.
 *
 * What a layer persists replaces what it persisted before, which stays in the store until a gc. So
 * each layer is charged for what it appends, until a gc has removed the unnamed part of it:
 *
 *   - A layer with a limit waits for a gc before its next persist once it has appended more than
 *     the largest of its limit, garbage_min and a sixteenth of the store. The cost of a gc grows
 *     with the store, so in a large one a small limit must not cause many.
 *   - At four times that, it can write nothing until a gc has ended. Its writes wait while one may
 *     still come or go on, and fail if none can be done.
 *   - When all together have appended a share of the store's size, a gc follows as soon as the
 *     committer is idle, and at four times as much, at once. Removed bytes count as appended: they
 *     may have been needed at the last gc, and are garbage only now.
 *
 * The committer's thread does it, in small steps; between them it persists what is due. A requested
 * gc or check ends it (gc.h). After a gc that failed, every layer is charged as before.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/size.h"
#include "cowfs/core/layers-i.h"
#include "cowfs/store/upkeep/gc.h"

#define GARBAGE_SHARE 4   /* of what the store takes */
#define GARBAGE_MUCH  4   /* times that: at once */
#define GARBAGE_OWED  16  /* part of what the store takes that one layer may append before */
#define GARBAGE_HARD  4   /* times that: it writes no more */
#define STEP          256 /* objects or pages */

/* Where one could not be done another is not tried for so long, twice as long each time it fails. */
#define AGAIN_MS    1000
#define AGAIN_TWICE 6 /* times */

/* How often as long as an fsync a write waits for a gc: less than fuse/watchdog.h does. */
#define PATIENCE 6

void sweep_bound(struct layer *l)
{
	const uint64_t limit = layer_limit(l), least = l->all->options.garbage_min;

	l->append_bound = limit > 0 && limit < least ? least : limit;
}

bool sweep_is_owed(const struct layer *l)
{
	const uint64_t bound = l->append_bound;

	if (bound == 0 || l->appended <= bound || layers_clock() < l->all->no_sweep_until)
		return false;
	return l->appended > store_file_bytes(l->all->store) / GARBAGE_OWED;
}

bool sweep_is_much(const struct layer *l)
{
	const uint64_t bound = l->append_bound, most = (l->appended + l->sweeping) / GARBAGE_HARD;

	if (bound == 0 || most <= bound)
		return false;
	return most > store_file_bytes(l->all->store) / GARBAGE_OWED;
}

void sweep_charge(struct layer *l, uint64_t bytes)
{
	l->appended += bytes;
	layers_count_garbage(l->all, bytes);
}

void sweep_count_freed(struct layer *l)
{
	const int64_t held = l->grown - l->loose + l->meta - l->loose_meta;

	if (held < l->held)
		layers_count_garbage(l->all, (uint64_t)(l->held - held));
	l->held = held;
}

/* The sweep takes over what is there; what comes is for the next. */
static void hand_over(_Atomic uint64_t *appended, _Atomic uint64_t *sweeping)
{
	const uint64_t bytes = *appended;

	*sweeping =
	    bytes; /* first: until it is subtracted, too much is counted rather than too little */
	*appended -= bytes;
}

/* It is gone, or charged again. */
static void take_back(_Atomic uint64_t *appended, _Atomic uint64_t *sweeping, bool gone)
{
	if (!gone)
		*appended += *sweeping;
	*sweeping = 0;
}

/* lock held */
static void begin_anew(struct layers *ls)
{
	hand_over(&ls->appended, &ls->sweeping);
	for (struct layer *l = ls->list; l; l = l->next)
		hand_over(&l->appended, &l->sweeping);
}

/* lock held */
static void settle(struct layers *ls, bool gone)
{
	take_back(&ls->appended, &ls->sweeping, gone);
	for (struct layer *l = ls->list; l; l = l->next) {
		take_back(&l->appended, &l->sweeping, gone);
		if (gone)
			l->stuck = false;
	}
}

static void log_progress(const struct gc_progress *p)
{
	char size[SIZE_TEXT_MAX];

	if (p->swept > 0)
		log_info("garbage: %" PRIu64 " objects of %s are gone, %" PRIu64 " stay", p->swept,
			 size_format(p->swept_bytes, size), p->marked);
}

/* With `shrink` the files become shorter too; else what is free in them is used again. */
static int collect_garbage(struct layers *ls, struct gc *g, bool shrink, sweep_between_fn *between,
			   struct err *err)
{
	struct gc_progress progress = { 0 };
	bool stop = false;
	int r = 1;

	while (r > 0 && !stop && (shrink || progress.phase != GC_SHRINK)) {
		r = gc_step(g, STEP, &progress, err);
		pthread_mutex_lock(&ls->lock);
		between(ls);
		stop = ls->stop;
		pthread_mutex_unlock(&ls->lock);
	}
	if (r < 0)
		return r;
	if (!stop)
		log_progress(&progress);
	return stop ? -ECANCELED : 0;
}

static int collect_and_shrink(struct layers *ls, bool shrink, sweep_between_fn *between,
			      struct gc **g, struct err *err)
{
	int r = gc_begin_aside(ls->store, g, err);

	if (r < 0)
		return r;
	r = collect_garbage(ls, *g, shrink, between, err);
	return r >= 0 && shrink ? store_checkpoint(ls->store, err) : r;
}

/* lock held */
static void note_success(struct layers *ls, bool shrink)
{
	settle(ls, true);
	ls->gcs = gc_count(ls->store);
	ls->failures = 0;
	ls->unshrunk = !shrink;
}

/*
 * A gc or check that somebody asked for is under way.  Of two gcs that have ended since the last
 * success, the second found all that was garbage then.  lock held
 */
static void note_busy(struct layers *ls)
{
	const uint64_t gcs = gc_count(ls->store);
	const bool gone = gcs >= ls->gcs + 2;

	settle(ls, gone);
	if (gone)
		ls->gcs = gcs;
	ls->no_sweep_until = layers_clock() + AGAIN_MS;
}

/* The store must be repaired first, so the next sweep would probably fail too.  lock held */
static void note_failure(struct layers *ls, const struct err *err)
{
	settle(ls, false);
	if (ls->failures == 0)
		log_warn("garbage stays where it is: %s, continuing", err->msg);
	ls->no_sweep_until = layers_clock() + (AGAIN_MS << ls->failures);
	if (ls->failures < AGAIN_TWICE)
		ls->failures++;
	ls->unshrunk = false;
}

void sweep_run(struct layers *ls, bool shrink, sweep_between_fn *between)
{
	struct gc *g = NULL;
	struct err err = { 0 };
	int r;

	begin_anew(ls);
	pthread_mutex_unlock(&ls->lock);
	r = collect_and_shrink(ls, shrink, between, &g, &err);
	gc_end(TAKE_PTR(g));
	pthread_mutex_lock(&ls->lock);
	if (r >= 0)
		note_success(ls, shrink);
	else if (r == -EBUSY || r == -ECANCELED)
		note_busy(ls);
	else
		note_failure(ls, &err);
	ls->unreturned = true;
	ls->worked_at = layers_clock();
	ls->sweep_wanted = false; /* whoever waits goes on now, and need not have another */
	ls->sweeps++;
	pthread_cond_broadcast(&ls->changed);
}

int64_t sweep_left(struct layers *ls)
{
	const uint64_t appended = ls->appended, least = ls->options.garbage_min / GARBAGE_IDLE;
	const int64_t now = layers_clock();
	int64_t left = ls->appended_at + ls->options.persist_ms - now;
	uint64_t share;

	if (ls->sweep_wanted)
		return 0;
	if (appended <= least && !ls->unshrunk)
		return -1;
	share = store_file_bytes(ls->store) / GARBAGE_SHARE;
	if (share < least)
		share = least;
	if (appended <= share && !ls->unshrunk)
		return -1;
	if (appended > GARBAGE_MUCH * share)
		left = 0;
	if (left < ls->no_sweep_until - now)
		left = ls->no_sweep_until - now;
	return left > 0 ? left : 0;
}

/* lock held */
static void ask_for_sweep(struct layers *ls)
{
	if (layers_clock() < ls->no_sweep_until)
		return;
	ls->sweep_wanted = true;
	pthread_cond_signal(&ls->work);
}

/* A gc may free it: until one fails, or too long has passed for a mount to seem alive.  lock held */
static bool is_hopeful(const struct layer *l, int64_t waited)
{
	const struct layers *ls = l->all;
	const int64_t once = ls->options.sweep_ms;

	return !l->stuck && waited < (ls->failures > 0 ? once : PATIENCE * once);
}

/* lock held */
static void give_up(struct layer *l)
{
	char size[SIZE_TEXT_MAX];

	if (!l->stuck)
		log_warn("clone '%s' has left %s of garbage that cannot be removed now: its writes "
			 "fail until it is",
			 l->record.name, size_format(l->appended + l->sweeping, size));
	l->stuck = true;
}

int sweep_await_room(struct layer *l)
{
	const int64_t begun = layers_clock();
	struct layers *ls = l->all;

	LOCKED(&ls->lock);
	while (sweep_is_much(l) && !ls->stop) {
		ask_for_sweep(ls);
		if (!is_hopeful(l, layers_clock() - begun)) {
			give_up(l);
			return -ENOSPC;
		}
		layers_wait(ls, &ls->changed, ls->options.sweep_ms);
	}
	return 0;
}

/* Not for ever: a large store takes its time, and a mount that answers nothing for long is ended. */
static void await_one(struct layer *l)
{
	struct layers *ls = l->all;
	int64_t until, left;
	uint64_t seen;

	until = layers_clock() + ls->options.sweep_ms;
	LOCKED(&ls->lock);
	seen = ls->sweeps;
	ls->sweep_wanted = true;
	while (ls->sweeps == seen && !ls->stop && (left = until - layers_clock()) > 0) {
		pthread_cond_signal(&ls->work);
		layers_wait(ls, &ls->changed, left);
	}
}

int sweep_await(struct layer *l)
{
	if (sweep_is_much(l))
		return sweep_await_room(l);
	if (sweep_is_owed(l))
		await_one(l);
	return 0;
}
