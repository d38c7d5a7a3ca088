/*
 * layer-settle.c - replace the promises of a layer's root when they have been captured.
 */
#include <errno.h>

#include "cowfs/core/halves-i.h"
#include "cowfs/core/layers-i.h"
#include "cowfs/core/listing-i.h"
#include "cowfs/core/persist-i.h"
#include "cowfs/store/settle.h"

static void settle_dir(struct node *n, const struct settle *s)
{
	const struct object_id *to = settle_find(s, &n->dir.base);

	if (!to || object_id_equal(to, &n->dir.base))
		return;
	n->dir.base = *to;
	n->dir.version++;
	listing_free(n->dir.listing);
	n->dir.listing = NULL;
}

/* One that was lost stays a promise. */
static void settle_file(struct layer *l, struct node *n, const struct settle *s)
{
	struct content c;

	if (n->file.base.form == CONTENT_LAZY && settle_one(s, &n->file.base.id, &c, NULL) > 0 &&
	    c.size == n->file.base.size)
		node_stand_on(l, n, &c);
}

/* A directory in memory has a tree of the root that was settled, since all was persisted. */
static void settle_nodes(struct layer *l, const struct settle *s)
{
	struct node *n;

	for (size_t pos = 0; (n = map_next(&l->nodes, &pos));)
		if (node_is_dir(n))
			settle_dir(n, s);
		else if (S_ISREG(n->mode))
			settle_file(l, n, s);
	l->switches++; /* no state from before is compared with one from after */
}

/* Without the lock. */
static int put_settled(struct layer *l, struct settle *s, struct clone *record, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = batch_begin(layers_store(l->all), &b, err);

	if (r < 0)
		return r;
	r = settle_root(s, b, &record->root, &record->root, err);
	if (r < 0)
		return r;
	r = clone_put(b, record, REF_REPLACE, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* With the lock, which it lets go of meanwhile; changes wait. */
static int settle_now(struct layer *l, struct settle *s, struct err *err)
{
	struct persist p = { .l = l, .durability = BATCH_SAFE };
	int r = l->marked ? persist_run(&p, err) : 0;
	struct clone record;

	halves_release(l);
	if (r < 0)
		return r;
	record = l->record;
	record.root = l->state.id;
	record.next_ino = l->next_ino;
	record.grown = l->grown - l->loose;
	record.meta = l->meta - l->loose_meta;
	pthread_mutex_unlock(&l->lock);
	r = put_settled(l, s, &record, err);
	pthread_mutex_lock(&l->lock);
	if (r < 0)
		return r;
	l->record.root = l->state.id = record.root;
	settle_nodes(l, s);
	return 0;
}

int layer_settle(struct layer *l, struct settle *s, struct err *err)
{
	int r;

	LOCKED(&l->lock);
	layer_take_turn(l);
	r = partly_keep(l, err);
	if (r == -EIO)
		r = partly_keep(l, err); /* what is lost is a promise like others now */
	if (r >= 0) {
		halves_hold(l);
		l->switching = true;
		r = settle_now(l, s, err);
		l->switching = false;
	}
	layer_end_turn(l);
	return r < 0 ? err_wrap(err, r, "clone '%s'", layer_name(l)) : 0;
}
