#include "cowfs/core/layers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "cowfs/core/layers-i.h"
#include "cowfs/store/pin.h"

/* --- all of them ------------------------------------------------------------------------ */

static void fill_options(struct layers_options *o)
{
	if (o->dirty_max == 0) {
		o->dirty_max = sys_memory() / 8;
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
		o->room_min = 1024 * MIB;
	if (o->garbage_min == 0)
		o->garbage_min = 64 * MIB;
	if (o->partly_max == 0)
		o->partly_max = 1024 * MIB;
	if (o->sweep_ms == 0)
		o->sweep_ms = 10000;
	if (o->cache.chunk_bytes == 0)
		o->cache.chunk_bytes = 24 * MIB;
	if (o->cache.meta_bytes == 0)
		o->cache.meta_bytes = 32 * MIB;
}

int layers_new(struct store *s, const struct layers_options *options, struct layers **ret,
	       struct err *err)
{
	CLEANUP(layers_free_p) struct layers *ls = calloc(1, sizeof(*ls));
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
	sys_cond_init(&ls->work);
	sys_cond_init(&ls->changed);
	r = cache_new(s, &ls->options.cache, &ls->cache, err);
	if (r < 0)
		return r;
	r = ahead_new(ls->cache, &ls->ahead, err);
	if (r < 0)
		return r;
	cache_share(ls->cache);
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
	layer_destroy(ls->closed);
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
		if (!layer_is_warm(l) && strcmp(layer_name(l), clone) == 0)
			return true;
	return false;
}

static int list_add(struct layers *ls, struct layer *l)
{
	bool taken;

	LOCKED(&ls->lock);
	taken = !layer_is_warm(l) && is_open(ls, layer_name(l));
	if (!taken) {
		l->next = ls->list;
		ls->list = l;
	}
	return taken ? -EBUSY : 0;
}

int layer_open(struct layers *ls, const char *clone, struct layer **ret, struct err *err)
{
	CLEANUP(layer_destroy_p) struct layer *l = NULL;
	int r = layer_create(ls, clone, &l, err);

	if (r < 0)
		return r;
	r = list_add(ls, l);
	if (r < 0)
		return err_set(err, r, "clone '%s' is open already", clone);
	*ret = TAKE_PTR(l);
	return 0;
}

int layer_open_warm(struct layers *ls, const struct object_id *root, struct layer **ret,
		    struct err *err)
{
	struct layer *l;
	int r = layer_create_warm(ls, root, &l, err);

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

	assert(layer_is_warm(l));
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

/* In which nothing was ever changed: it holds no more than memory, and no dirty memory. */
static bool is_untouched(const struct layer *l)
{
	return !l->marked && l->freezes == 0;
}

/*
 * To free a layer with thousands of nodes, such as a former warm clone, takes milliseconds.  The
 * committer can do that for the caller; one at a time, so that memory is not freed more slowly than it
 * is taken.  lock held.  False if the caller must do it.
 */
static bool leave_to_committer(struct layers *ls, struct layer *l)
{
	if (ls->closed || l->nodes.n < LATER_NODES || !is_untouched(l))
		return false;
	ls->closed = l;
	pthread_cond_signal(&ls->work);
	return true;
}

void layer_discard(struct layer *l)
{
	struct layers *ls;
	struct layer **at;
	bool left;

	if (!l)
		return;
	ls = l->all;
	layer_unpin(l);
	/* A removed clone leaves its own objects behind, for the sweep. */
	if (!l->kept && l->grown > 0)
		sweep_charge(l, (uint64_t)l->grown);
	pthread_mutex_lock(&ls->lock);
	for (at = &ls->list; *at != l;)
		at = &(*at)->next;
	*at = l->next;
	while (l->committers > 0)
		pthread_cond_wait(&ls->changed, &ls->lock);
	left = leave_to_committer(ls, l);
	pthread_mutex_unlock(&ls->lock);
	if (!left)
		layer_destroy(l);
}

int layer_close(struct layer *l, struct err *err)
{
	struct layer_state state;
	int r;

	assert(!layer_is_warm(l));
	r = layer_persist(l, BATCH_DURABLE, NULL, NULL, &state, err);
	if (r == -EIO) /* a file that was lost fails once; all else must not go with it */
		r = layer_persist(l, BATCH_DURABLE, NULL, NULL, &state, err);
	if (r < 0)
		return r;
	l->kept = true;
	layer_discard(l);
	return 0;
}
