#include "engine/act/clone-base-i.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/vec.h"
#include "engine/host/host-i.h"

struct due {
	struct catalog_id *list; /* owned */
	size_t n, cap;
};

static void due_done(struct due *d)
{
	free(d->list);
}

static int add_due(const struct receipt *r, void *ctx, struct err *err)
{
	struct due *d = ctx;

	if (r->base_due == 0)
		return 0;
	if (!VEC_ROOM(d->list, d->n, d->cap))
		return err_nomem(err);
	d->list[d->n++] = r->id;
	return 0;
}

/* --- one -------------------------------------------------------------------------------- */

static int put_settled(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	return receipt_put(b, ctx, REF_REPLACE, err);
}

static int put_nothing(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	return 0;
}

/* What is stored together with a clone's new base. */
struct along {
	layer_also_fn put;
	void *ctx;
};

/* Store that and, unless NULL, the clone with its new base. */
static int put_both(struct host *h, const struct along *also, const struct clone *clone,
		    struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int x = batch_begin(h->store, &b, err);

	if (x < 0)
		return x;
	x = also->put(b, NULL, also->ctx, err);
	if (x < 0)
		return x;
	if (clone)
		x = clone_put(b, clone, REF_REPLACE, err);
	return x < 0 ? x : batch_commit(b, BATCH_SAFE, err);
}

/* Move the base of a clone that is not mounted. */
static int move_stored(struct host *h, const struct clone *clone, const struct layer_base *to,
		       const struct along *also, struct err *err)
{
	struct clone moved = *clone; /* its name is borrowed */

	moved.base = to->base;
	moved.start = to->start;
	moved.grown -= to->more.data;
	moved.meta -= to->more.meta;
	return put_both(h, also, &moved, err);
}

/* The caller has the clone's turn and holds host->snapshots for reading. */
static int move_base(struct host *h, const struct clone *clone, const struct snapshot *to,
		     const struct along *also, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot from = { 0 };
	struct live *live = live_find(h, clone->name);
	struct layer_base there = { .base = to->id };
	struct layer_base back = { .base = clone->base, .start = clone->start };
	struct layer_state unused;
	int x = snapshot_get(h->store, clone_start(clone), &from, err);

	/* The project now has what landed, so it does not count as the clone's growth. */
	if (x == -ENOENT)
		x = 0;
	else if (x >= 0)
		x = layer_growth(h->store, &from.root, &to->root, &there.more, err);
	if (x < 0 || !live)
		return x < 0 ? x : move_stored(h, clone, &there, also, err);
	layer_set_base(live->layer, &there);
	x = layer_persist(live->layer, BATCH_SAFE, also->put, also->ctx, &unused, err);
	if (x >= 0)
		return x;
	back.more.data = -there.more.data;
	back.more.meta = -there.more.meta;
	layer_set_base(live->layer, &back);
	return x;
}

/* 1 if the clone still has its old base and the new one still exists. */
static int may_move(struct host *h, const struct receipt *r, const struct clone *clone,
		    struct snapshot *ret_to, struct err *err)
{
	const bool done = r->state == RECEIPT_DONE;
	int x;

	if (!catalog_id_same(&clone->project, &r->project) || clone->created >= r->created ||
	    !catalog_id_same(&clone->base, done ? &r->base : &r->next_base))
		return 0;
	x = snapshot_get(h->store, done ? &r->next_base : &r->base, ret_to, err);
	return x == -ENOENT ? 0 : x < 0 ? x : 1;
}

static int settle_turn(struct host *h, const struct catalog_id *id, struct err *err)
{
	CLEANUP(receipt_done) struct receipt r = { 0 };
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(snapshot_done) struct snapshot to = { 0 };
	const struct along also = { put_settled, &r };
	int x = receipt_get(h->store, id, &r, err);

	if (x < 0 || r.base_due == 0)
		return x == -ENOENT ? 0 : x;
	r.base_due = 0;
	x = clone_get(h->store, r.clone, &clone, err);
	x = x < 0 ? x : may_move(h, &r, &clone, &to, err);
	if (x > 0)
		return move_base(h, &clone, &to, &also, err);
	return x < 0 && x != -ENOENT ? x : put_both(h, &also, NULL, err);
}

static int settle(struct host *h, const struct catalog_id *id, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(receipt_done) struct receipt r = { 0 };
	int x = receipt_get(h->store, id, &r, err);

	if (x < 0 || !r.clone)
		return x == -ENOENT ? 0 : x;
	x = turns_take(&h->turns, r.clone, &turn, err);
	if (x < 0)
		return x;
	/* From finding the snapshot to the commit that names it (forget-i.h). */
	pthread_rwlock_rdlock(&h->snapshots);
	x = settle_turn(h, id, err);
	pthread_rwlock_unlock(&h->snapshots);
	return x;
}

void clone_base_settle(struct host *h)
{
	CLEANUP(due_done) struct due due = { 0 };
	struct err err = { 0 };
	int r = receipt_each(h->store, add_due, &due, &err);

	if (r < 0)
		log_warn("looking for bases to move: %s, continuing", err.msg);
	for (size_t i = 0; i < due.n; i++)
		if (settle(h, &due.list[i], &err) < 0)
			log_warn("moving the base of a clone: %s, continuing", err.msg);
}

/* --- without a receipt ------------------------------------------------------------------- */

/* First of all: a persist of the layer may commit the clone's new base as soon as it has it. */
static int put_new(struct host *h, const struct snapshot *to, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int x = batch_begin(h->store, &b, err);

	x = x < 0 ? x : snapshot_put(b, to, REF_NEW, err);
	return x < 0 ? x : batch_commit(b, BATCH_SAFE, err);
}

/* The caller holds host->snapshots for reading. */
static int move_turn(struct host *h, const struct clone *was, struct snapshot *to, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	const struct along nothing = { put_nothing, NULL };
	int x = clone_get(h->store, was->name, &clone, err);

	if (x < 0)
		return x == -ENOENT ? 0 : x;
	if (clone.created != was->created || !catalog_id_same(&clone.base, &was->base))
		return 0;
	x = catalog_id_new(&to->id, err);
	to->base = to->id; /* a rollback to it makes it the base again */
	x = x < 0 ? x : put_new(h, to, err);
	return x < 0 ? x : move_base(h, &clone, to, &nothing, err);
}

void clone_base_move(struct host *h, const struct clone *clone, struct snapshot *to)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct err err = { 0 };
	int x = turns_take(&h->turns, clone->name, &turn, &err);

	if (x >= 0) {
		pthread_rwlock_rdlock(&h->snapshots);
		x = move_turn(h, clone, to, &err);
		pthread_rwlock_unlock(&h->snapshots);
	}
	if (x < 0)
		log_warn("moving the base of clone '%s': %s, continuing", clone->name, err.msg);
}
