/*
 * budget.c - shared, limited resources of all layers: dirty memory, room on the disk, time to load.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cowfs/core/layers-i.h"

void layers_wake(struct layers *ls)
{
	LOCKED(&ls->lock);
	pthread_cond_signal(&ls->work);
}

void layers_wait(struct layers *ls, pthread_cond_t *cond, int64_t ms)
{
	if (ms < 0)
		pthread_cond_wait(cond, &ls->lock);
	else
		sys_cond_wait_ms(cond, &ls->lock, (uint64_t)ms);
}

/* --- counting --------------------------------------------------------------------------- */

struct cache *layers_cache(struct layers *ls)
{
	return ls->cache;
}

struct ahead *layers_ahead(struct layers *ls)
{
	return ls->ahead;
}

struct store *layers_store(struct layers *ls)
{
	return ls->store;
}

int64_t layers_clock(void)
{
	return (int64_t)clock_ms();
}

/* --- loading ---------------------------------------------------------------------------- */

int layers_load(struct layers *ls, enum object_kind kind, const struct object_id *id,
		const struct cached **ret, struct err *err)
{
	const int64_t start = (int64_t)clock_us();
	int64_t took;
	int r;

	ls->store_waits++;
	r = cache_load(ls->cache, kind, id, ret, err);
	took = (int64_t)clock_us() - start;
	/* Two threads at once may lose one of two samples, which does no harm. */
	ls->load_us += (took - ls->load_us) / 8;
	return r;
}

int layers_keep_promise(struct layers *ls, const struct object_id *promise, struct content *ret,
			struct err *err)
{
	const struct layers_source *from = &ls->options.source;

	if (!from->keep)
		return err_set(err, -EIO, "it was not captured, and nobody can capture it here");
	return from->keep(promise, ret, from->ctx, err);
}

ssize_t layers_peek_promise(struct layers *ls, const struct object_id *promise, uint64_t off,
			    void *data, size_t len)
{
	const struct layers_source *from = &ls->options.source;

	return from->peek ? from->peek(promise, off, data, len, from->ctx) : -EAGAIN;
}

int layers_hurry_promise(struct layers *ls, const struct object_id *promise)
{
	const struct layers_source *from = &ls->options.source;

	return from->hurry ? from->hurry(promise, from->ctx) : 0;
}

bool layers_load_quickly(struct layers *ls)
{
	return ls->load_us < ls->options.quick_us;
}

void layers_count_persist(struct layers *ls)
{
	ls->persists++;
	/* What was dirty is on the disk now: the next writer looks how much that has left. */
	ls->room_at = 0;
}

void layers_count_wait(struct layers *ls)
{
	ls->store_waits++;
}

void layers_count_node(struct layers *ls, int n)
{
	const uint64_t nodes =
	    atomic_fetch_add(&ls->nodes, (uint64_t)(int64_t)n) + (uint64_t)(int64_t)n;

	if (nodes > ls->nodes_high)
		ls->nodes_high = nodes;
	else if (n < 0 && nodes == ls->nodes_high / 2 && ls->nodes_high >= MEMORY_NODES)
		layers_wake(ls);
}

void layers_stats(struct layers *ls, struct layers_stats *ret)
{
	*ret = (struct layers_stats){
		.dirty = (uint64_t)ls->dirty,
		.nodes = ls->nodes,
		.persists = ls->persists,
		.sweeps = ls->sweeps,
		.store_waits = ls->store_waits,
		.room_waits = ls->room_waits,
		.cache = cache_stats(ls->cache),
	};
}

/* --- room ------------------------------------------------------------------------------- */

/* Beyond it the committer begins.  What is overwritten or removed before need never be stored. */
static uint64_t soft_limit(const struct layers *ls)
{
	return ls->options.dirty_max - ls->options.dirty_max / 4;
}

bool layers_pressed(struct layers *ls)
{
	return (uint64_t)ls->dirty > soft_limit(ls);
}

void layers_was_marked(struct layers *ls)
{
	ls->hopeless_at = UINT64_MAX; /* it may have been a removal */
	layers_wake(ls);
}

void layers_count_garbage(struct layers *ls, uint64_t bytes)
{
	const uint64_t least = ls->options.garbage_min / GARBAGE_IDLE;

	ls->appended_at = layers_clock();
	if (atomic_fetch_add(&ls->appended, bytes) + bytes > least)
		layers_wake(ls);
}

void layers_removed(struct layers *ls, uint64_t bytes)
{
	ls->removals++;
	ls->hopeless_at = UINT64_MAX;
	layers_count_garbage(ls, bytes);
}

void layers_harden_soon(struct layers *ls)
{
	int64_t none = 0;

	if (atomic_compare_exchange_strong(&ls->harden_at, &none,
					   layers_clock() + ls->options.persist_ms))
		layers_wake(ls);
}

/* Half of what was once there is gone, which was much. */
static void count_high(struct layers *ls, int64_t before, int64_t now)
{
	const int64_t high = atomic_load_explicit(&ls->dirty_high, memory_order_relaxed);

	if (now > high)
		ls->dirty_high = now;
	else if (high >= MEMORY_DIRTY && before > high / 2 && now <= high / 2)
		layers_wake(ls);
}

void layer_count(struct layer *l, int64_t grown)
{
	struct layers *ls = l->all;
	const int64_t own = atomic_load_explicit(&l->dirty, memory_order_relaxed);
	const int64_t before = atomic_fetch_add(&ls->dirty, grown);
	const int64_t limit = (int64_t)soft_limit(ls), hard = (int64_t)ls->options.dirty_max;

	atomic_store_explicit(&l->dirty, own + grown, memory_order_relaxed);
	count_high(ls, before, before + grown);
	if (before <= limit && before + grown > limit)
		layers_wake(ls);
	if (before > hard && before + grown <= hard) {
		pthread_mutex_lock(&ls->lock);
		pthread_cond_broadcast(&ls->changed);
		pthread_mutex_unlock(&ls->lock);
	}
}

int layers_statvfs(struct layers *ls, struct statvfs *ret)
{
	return statvfs(store_path(ls->store), ret) < 0 ? -errno : 0;
}

/* What must stay free for metadata and gc; on a small disk a twentieth of it. */
static uint64_t room_min(const struct layers *ls, const struct statvfs *st)
{
	const uint64_t part = (uint64_t)st->f_blocks * st->f_frsize / 20;

	return part < ls->options.room_min ? part : ls->options.room_min;
}

/* Of a limit, at least so much is for metadata, for pages that are not full, and for gc. */
#define LIMIT_PART_MIN (8 * MIB)

/* What the store's own limit leaves, less a twentieth of it for those. */
static int64_t limit_left(const struct layers *ls)
{
	const uint64_t left = store_limit_left(ls->store);
	uint64_t part = store_limit(ls->store) / 20;

	if (left > INT64_MAX / 2)
		return INT64_MAX / 2;
	if (part > ls->options.room_min)
		part = ls->options.room_min;
	return (int64_t)left - (int64_t)(part > LIMIT_PART_MIN ? part : LIMIT_PART_MIN);
}

/*
 * Dirty bytes have their place reserved, so that what was accepted can be persisted: once in a
 * log, and once more where the log is moved to.
 */
void layers_look_at_disk(struct layers *ls)
{
	const int64_t limit = limit_left(ls);
	struct statvfs st;
	int64_t left;

	ls->room_at = layers_clock();
	if (layers_statvfs(ls, &st) < 0)
		return;
	left = (int64_t)((uint64_t)st.f_bavail * st.f_frsize) - (int64_t)room_min(ls, &st);
	ls->over_limit = limit < left;
	left = (limit < left ? limit : left) - (int64_t)store_log_bytes(ls->store) -
	       2 * (ls->dirty + (int64_t)LAYER_IO_MAX);
	ls->tight = left < 0;
	/* A quarter of what is left may come before the next look. */
	ls->room_until = ls->dirty + left / 4;
}

/* A clone that has little of it goes on where others have taken it all: a quarter is left for those. */
#define SHARE_LITTLE 16
#define SHARE_LEFT   4

static bool is_full(const struct layer *l)
{
	const struct layers *ls = l->all;
	const uint64_t max = ls->options.dirty_max, all = (uint64_t)ls->dirty;

	if (all <= max - LAYER_IO_MAX)
		return false;
	return (uint64_t)l->dirty > max / SHARE_LITTLE || all > max + max / SHARE_LEFT;
}

int layers_room(struct layer *l, size_t bytes, struct need *need)
{
	struct layers *ls = l->all;

	if (ls->tight || ls->dirty + (int64_t)bytes > ls->room_until ||
	    (bytes > 0 && layers_clock() - ls->room_at > ROOM_MS))
		layers_look_at_disk(ls);
	if (!ls->tight && !is_full(l) && !sweep_is_much(l))
		return 0;
	/* Nothing has come or gone since the committer did what it could. */
	if (ls->tight && ls->hopeless_at == ls->persists)
		return -ENOSPC;
	*need = (struct need){ .kind = NEED_ROOM };
	return -EAGAIN;
}

/* The committer makes room, and removes garbage first; if two rounds of it persisted nothing it cannot. */
int layers_wait_room(struct layers *ls, struct layer *l)
{
	uint64_t until, seen;
	int r = sweep_await_room(l);

	if (r < 0)
		return r;
	ls->room_waits++;
	LOCKED(&ls->lock);
	seen = ls->persists;
	until = ls->rounds + 2;
	ls->wanted++;
	while ((ls->tight || is_full(l)) && r >= 0 && !ls->stop) {
		pthread_cond_signal(&ls->work);
		pthread_cond_wait(&ls->changed, &ls->lock);
		if (ls->rounds < until)
			continue;
		if (ls->persists == seen && ls->apart == 0 && (ls->tight || is_full(l)))
			r = l->failed < 0 && l->failed != -EDQUOT ? l->failed : -ENOSPC;
		seen = ls->persists;
		until = ls->rounds + 2;
	}
	ls->wanted--;
	if (r < 0)
		ls->hopeless_at = ls->persists;
	return r;
}
