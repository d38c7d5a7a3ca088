#include "cowfs/core/layers.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "cowfs/core/ahead-i.h"
#include "cowfs/core/layer-i.h"
#include "cowfs/store/gc.h"
#include "cowfs/store/pin.h"

#define MIB ((uint64_t)1 << 20)

/* Between two looks at how much the disk has left, though nothing came. */
#define ROOM_MS 1000

/*
 * As long as the system has the store's files in memory an object is there in some 10 us: less
 * than it takes to wake another thread, let alone two.
 */
#define QUICK_US 150

/* Fewer are not worth giving memory back for. */
#define MEMORY_NODES 10000

struct layers {
	struct store *store;
	struct cache *cache;
	struct ahead *ahead;
	struct layers_options options;

	_Atomic int64_t dirty;
	_Atomic uint64_t nodes, persists, removals, store_waits, room_waits;
	_Atomic int64_t load_us;     /* what reading an object took of late */
	_Atomic uint64_t nodes_high; /* since free memory was last given back */

	/* When the disk was last looked at, and what was seen; stale values only cost another look. */
	_Atomic int64_t room_at;    /* ms */
	_Atomic int64_t room_until; /* dirty bytes that are no cause for another look */
	_Atomic bool tight;
	_Atomic uint64_t hopeless_at; /* persists when nothing could be done about it */
	uint64_t swept_at; /* persists and removals at the last gc of ours; the committer's own */

	pthread_mutex_t lock; /* guards what follows; a leaf */
	pthread_cond_t work;  /* for the committer */
	pthread_cond_t
	    changed; /* dirty memory fell, a persist failed, or a committer let a layer go */
	struct layer *list;
	uint64_t rounds; /* of the committer, ended */
	unsigned wanted; /* who waits for room */
	bool stop;
	pthread_t committer;
	bool started;
};

static void wake_committer(struct layers *ls)
{
	pthread_mutex_lock(&ls->lock);
	pthread_cond_signal(&ls->work);
	pthread_mutex_unlock(&ls->lock);
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
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- loading ---------------------------------------------------------------------------- */

static int64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int layers_load(struct layers *ls, enum object_kind kind, const struct object_id *id,
		const struct cached **ret, struct err *err)
{
	const int64_t start = clock_us();
	int64_t took;
	int r;

	ls->store_waits++;
	r = cache_load(ls->cache, kind, id, ret, err);
	took = clock_us() - start;
	/* Two threads at once may lose one of two samples, which does no harm. */
	ls->load_us += (took - ls->load_us) / 8;
	return r;
}

bool layers_load_quickly(struct layers *ls)
{
	return ls->load_us < ls->options.quick_us;
}

void layers_count_persist(struct layers *ls)
{
	ls->persists++;
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
		wake_committer(ls);
}

void layers_stats(struct layers *ls, struct layers_stats *ret)
{
	*ret = (struct layers_stats){
		.dirty = (uint64_t)ls->dirty,
		.nodes = ls->nodes,
		.persists = ls->persists,
		.store_waits = ls->store_waits,
		.room_waits = ls->room_waits,
		.cache = cache_stats(ls->cache),
	};
}

/* --- room ------------------------------------------------------------------------------- */

static uint64_t soft_limit(const struct layers *ls)
{
	return ls->options.dirty_max / 2;
}

bool layers_pressed(struct layers *ls)
{
	return (uint64_t)ls->dirty > soft_limit(ls);
}

void layers_was_marked(struct layers *ls)
{
	ls->hopeless_at = UINT64_MAX; /* it may have been a removal */
	wake_committer(ls);
}

void layers_removed(struct layers *ls)
{
	ls->removals++;
	ls->hopeless_at = UINT64_MAX;
}

void layers_count(struct layers *ls, int64_t grown)
{
	const int64_t before = atomic_fetch_add(&ls->dirty, grown);
	const int64_t limit = (int64_t)soft_limit(ls), hard = (int64_t)ls->options.dirty_max;

	if (before <= limit && before + grown > limit)
		wake_committer(ls);
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

/*
 * Dirty bytes have their place reserved, so that what was accepted can be persisted: once in a
 * log, and once more where the log is moved to.
 */
static void look_at_disk(struct layers *ls)
{
	struct statvfs st;
	int64_t left;

	ls->room_at = layers_clock();
	if (layers_statvfs(ls, &st) < 0)
		return;
	left = (int64_t)((uint64_t)st.f_bavail * st.f_frsize) -
	       (int64_t)(room_min(ls, &st) + store_log_bytes(ls->store)) -
	       2 * (ls->dirty + (int64_t)LAYER_IO_MAX);
	ls->tight = left < 0;
	/* A quarter of what is left may come before the next look. */
	ls->room_until = ls->dirty + left / 4;
}

static bool is_full(struct layers *ls)
{
	return (uint64_t)ls->dirty > ls->options.dirty_max - LAYER_IO_MAX;
}

int layers_room(struct layers *ls, size_t bytes, struct need *need)
{
	if (ls->tight || ls->dirty + (int64_t)bytes > ls->room_until ||
	    (bytes > 0 && layers_clock() - ls->room_at > ROOM_MS))
		look_at_disk(ls);
	if (!ls->tight && (bytes == 0 || !is_full(ls)))
		return 0;
	/* Nothing has come or gone since the committer did what it could. */
	if (ls->tight && ls->hopeless_at == ls->persists)
		return -ENOSPC;
	*need = (struct need){ .kind = NEED_ROOM };
	return -EAGAIN;
}

/* The committer makes room; if two rounds of it persisted nothing it cannot. */
int layers_wait_room(struct layers *ls, struct layer *l)
{
	uint64_t until, seen;
	int r = 0;

	ls->room_waits++;
	pthread_mutex_lock(&ls->lock);
	seen = ls->persists;
	until = ls->rounds + 2;
	ls->wanted++;
	while ((ls->tight || is_full(ls)) && r >= 0 && !ls->stop) {
		pthread_cond_signal(&ls->work);
		pthread_cond_wait(&ls->changed, &ls->lock);
		if (ls->rounds < until)
			continue;
		if (ls->persists == seen && (ls->tight || is_full(ls)))
			r = l->failed < 0 ? l->failed : -ENOSPC;
		seen = ls->persists;
		until = ls->rounds + 2;
	}
	ls->wanted--;
	if (r < 0)
		ls->hopeless_at = ls->persists;
	pthread_mutex_unlock(&ls->lock);
	return r;
}

/* --- the committer ---------------------------------------------------------------------- */

static bool is_due(struct layers *ls, struct layer *l, int64_t now, int64_t *ret_wait)
{
	const int64_t since = atomic_load(&l->dirty_since);
	int64_t left;

	if (since == 0)
		return false;
	left = since + ls->options.persist_ms - now;
	if (left <= 0 || ls->wanted > 0 || layers_pressed(ls))
		return true;
	if (*ret_wait < 0 || left < *ret_wait)
		*ret_wait = left;
	return false;
}

/* One that is due and that this round has not had, or NULL and how long nothing is.  lock held. */
static struct layer *next_due(struct layers *ls, uint64_t round, int64_t *ret_wait)
{
	const int64_t now = layers_clock();

	*ret_wait = -1;
	for (struct layer *l = ls->list; l; l = l->next)
		if (l->round != round && is_due(ls, l, now, ret_wait))
			return l;
	return NULL;
}

/* Deleting makes room only once what was deleted is swept and the logs are moved. */
static void make_room(struct layers *ls)
{
	struct gc_progress progress;
	struct err err = { 0 };

	look_at_disk(ls);
	if (!ls->tight)
		return;
	if (store_checkpoint(ls->store, &err) < 0)
		log_debug("%s, continuing", err.msg);
	look_at_disk(ls);
	if (!ls->tight || ls->persists + ls->removals == ls->swept_at)
		return;
	ls->swept_at = ls->persists + ls->removals;
	if (gc_run(ls->store, &progress, &err) < 0)
		log_warn("the disk is nearly full and gc failed: %s, continuing", err.msg);
	else if (store_checkpoint(ls->store, &err) < 0)
		log_debug("%s, continuing", err.msg);
	look_at_disk(ls);
}

static void commit_layer(struct layer *l)
{
	struct layer_state state;
	struct err err = { 0 };

	if (layer_persist(l, BATCH_SAFE, NULL, NULL, &state, &err) < 0)
		log_warn("clone '%s' cannot be persisted: %s, trying again", layer_name(l),
			 err.msg);
}

/* lock held; for `wait` ms, or until there is work if negative */
static void wait_for_work(struct layers *ls, int64_t wait)
{
	struct timespec until;

	if (wait < 0) {
		pthread_cond_wait(&ls->work, &ls->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait / 1000;
	until.tv_nsec += wait % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(&ls->work, &ls->lock, &until);
}

/* lock held, but for what takes long */
static void end_round(struct layers *ls)
{
	if (ls->wanted > 0 || ls->tight) {
		pthread_mutex_unlock(&ls->lock);
		make_room(ls);
		pthread_mutex_lock(&ls->lock);
	}
	ls->rounds++;
}

/* Most of what was in memory is gone: so may its memory be.  lock held, but for that */
static void give_memory_back(struct layers *ls)
{
	if (ls->nodes > ls->nodes_high / 2 || ls->nodes_high < MEMORY_NODES)
		return;
	ls->nodes_high = ls->nodes;
	pthread_mutex_unlock(&ls->lock);
	cache_drop(ls->cache);
	sys_return_memory();
	pthread_mutex_lock(&ls->lock);
}

static void *committer_run(void *arg)
{
	struct layers *ls = arg;
	struct layer *l;
	int64_t wait;

	sys_lower_priority();
	pthread_mutex_lock(&ls->lock);
	while (!ls->stop) {
		l = next_due(ls, ls->rounds + 1, &wait);
		if (!l) {
			end_round(ls);
			give_memory_back(ls);
			pthread_cond_broadcast(&ls->changed);
			/* What failed, or grew meanwhile, has another try a little later. */
			if (next_due(ls, ls->rounds + 1, &wait) || ls->wanted > 0)
				wait = 20;
			/* The lock was let go of meanwhile, so a call to stop may have come. */
			if (!ls->stop)
				wait_for_work(ls, wait);
			continue;
		}
		l->round = ls->rounds + 1;
		l->committers++;
		pthread_mutex_unlock(&ls->lock);
		commit_layer(l);
		pthread_mutex_lock(&ls->lock);
		l->committers--;
		pthread_cond_broadcast(&ls->changed);
	}
	pthread_mutex_unlock(&ls->lock);
	return NULL;
}

/* --- all of them ------------------------------------------------------------------------ */

static uint64_t machine_memory(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 1024 * MIB;
}

static void fill_options(struct layers_options *o)
{
	if (o->dirty_max == 0) {
		o->dirty_max = machine_memory() / 8;
		if (o->dirty_max > 2048 * MIB)
			o->dirty_max = 2048 * MIB;
	}
	if (o->dirty_max < 8 * LAYER_IO_MAX)
		o->dirty_max = 8 * LAYER_IO_MAX;
	if (o->quick_us == 0)
		o->quick_us = QUICK_US;
	if (o->persist_ms == 0)
		o->persist_ms = 5000;
	if (o->room_min == 0)
		o->room_min = 64 * MIB;
	if (o->cache.chunk_bytes == 0)
		o->cache.chunk_bytes = 24 * MIB;
	if (o->cache.meta_bytes == 0)
		o->cache.meta_bytes = 32 * MIB;
}

int layers_new(struct store *s, const struct layers_options *options, struct layers **ret,
	       struct err *err)
{
	CLEANUP(layers_free_p) struct layers *ls = calloc(1, sizeof(*ls));
	pthread_condattr_t monotonic;
	int r;

	if (!ls)
		return err_nomem(err);
	ls->store = s;
	ls->hopeless_at = UINT64_MAX;
	ls->load_us = 1;
	if (options)
		ls->options = *options;
	fill_options(&ls->options);
	pthread_mutex_init(&ls->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&ls->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&ls->changed, NULL);
	r = cache_new(s, &ls->options.cache, &ls->cache, err);
	if (r >= 0)
		r = ahead_new(ls->cache, &ls->ahead, err);
	if (r < 0)
		return r;
	r = pthread_create(&ls->committer, NULL, committer_run, ls);
	if (r != 0)
		return err_set(err, -r, "no thread for the committer: %s", strerror(r));
	ls->started = true;
	*ret = TAKE_PTR(ls);
	return 0;
}

void layers_free(struct layers *ls)
{
	if (!ls)
		return;
	assert(!ls->list);
	if (ls->started) {
		pthread_mutex_lock(&ls->lock);
		ls->stop = true;
		pthread_cond_broadcast(&ls->work);
		pthread_cond_broadcast(&ls->changed);
		pthread_mutex_unlock(&ls->lock);
		pthread_join(ls->committer, NULL);
	}
	ahead_free(ls->ahead);
	cache_free(ls->cache);
	pthread_cond_destroy(&ls->work);
	pthread_cond_destroy(&ls->changed);
	pthread_mutex_destroy(&ls->lock);
	free(ls);
}

/* --- one of them ------------------------------------------------------------------------ */

/* Two of one clone would each persist without what the other did.  lock held */
static bool is_open(const struct layers *ls, const char *clone)
{
	for (const struct layer *l = ls->list; l; l = l->next)
		if (!layer_is_spare(l) && strcmp(layer_name(l), clone) == 0)
			return true;
	return false;
}

static int list_add(struct layers *ls, struct layer *l)
{
	bool taken;

	pthread_mutex_lock(&ls->lock);
	taken = !layer_is_spare(l) && is_open(ls, layer_name(l));
	if (!taken) {
		l->next = ls->list;
		ls->list = l;
	}
	pthread_mutex_unlock(&ls->lock);
	return taken ? -EBUSY : 0;
}

int layer_open(struct layers *ls, const char *clone, struct layer **ret, struct err *err)
{
	CLEANUP(layer_destroy_p) struct layer *l = NULL;
	int r;

	r = layer_create(ls, clone, &l, err);
	if (r < 0)
		return r;
	r = list_add(ls, l);
	if (r < 0)
		return err_set(err, r, "clone '%s' is open already", clone);
	*ret = TAKE_PTR(l);
	return 0;
}

int layer_open_spare(struct layers *ls, const struct object_id *root, struct layer **ret,
		     struct err *err)
{
	struct layer *l;
	int r;

	r = layer_create_spare(ls, root, &l, err);
	if (r < 0)
		return r;
	IGNORE_RESULT(list_add(ls, l), "it has no name that could be taken");
	*ret = l;
	return 0;
}

int layer_adopt(struct layer *l, const char *clone, struct err *err)
{
	CLEANUP(clone_done) struct clone record = { 0 };
	struct layers *ls = l->all;
	const struct object_id root = l->record.root;
	bool taken;
	int r;

	assert(layer_is_spare(l));
	r = layer_find_record(ls, clone, &record, err);
	if (r < 0)
		return r;
	if (!object_id_equal(&record.root, &root))
		return err_set(err, -ESTALE, "clone '%s' starts from something else", clone);
	pthread_mutex_lock(&l->lock);
	pthread_mutex_lock(&ls->lock);
	taken = is_open(ls, clone);
	if (!taken)
		layer_take_record(l, &record);
	pthread_mutex_unlock(&ls->lock);
	pthread_mutex_unlock(&l->lock);
	if (taken)
		return err_set(err, -EBUSY, "clone '%s' is open already", clone);
	l->pinned = false;
	store_unpin(ls->store, OBJECT_TREE, &root);
	return 0;
}

void layer_discard(struct layer *l)
{
	struct layers *ls;
	struct layer **at;

	if (!l)
		return;
	ls = l->all;
	pthread_mutex_lock(&ls->lock);
	for (at = &ls->list; *at != l;)
		at = &(*at)->next;
	*at = l->next;
	while (l->committers > 0)
		pthread_cond_wait(&ls->changed, &ls->lock);
	pthread_mutex_unlock(&ls->lock);
	layer_destroy(l);
}

int layer_close(struct layer *l, struct err *err)
{
	struct layer_state state;
	int r;

	assert(!layer_is_spare(l));
	r = layer_persist(l, BATCH_DURABLE, NULL, NULL, &state, err);
	if (r < 0)
		return r;
	layer_discard(l);
	return 0;
}
