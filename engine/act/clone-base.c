#include "engine/act/clone-base-i.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/host/host-i.h"

struct due {
	struct catalog_id *list; /* owned */
	size_t n;
};

static void due_done(struct due *d)
{
	free(d->list);
}

static int add_due(const struct receipt *r, void *ctx, struct err *err)
{
	struct due *d = ctx;
	struct catalog_id *list;

	if (r->base_due == 0)
		return 0;
	list = reallocarray(d->list, d->n + 1, sizeof(*list));
	if (!list)
		return err_nomem(err);
	d->list = list;
	list[d->n++] = r->id;
	return 0;
}

/* --- one -------------------------------------------------------------------------------- */

static int put_settled(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	(void)state;
	return receipt_put(b, ctx, REF_REPLACE, err);
}

/* The mark goes, and with it comes the new base of a clone that is not mounted; NULL: of none. */
static int put_both(struct host *h, const struct receipt *r, const struct clone *clone,
		    struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int x = batch_begin(h->store, &b, err);

	if (x >= 0)
		x = receipt_put(b, r, REF_REPLACE, err);
	if (x >= 0 && clone)
		x = clone_put(b, clone, REF_REPLACE, err);
	return x < 0 ? x : batch_commit(b, BATCH_SAFE, err);
}

/* The turn of the clone is the caller's, and host->snapshots held for reading. */
static int move_base(struct host *h, struct clone *clone, const struct catalog_id *to,
		     struct receipt *r, struct err *err)
{
	const struct catalog_id from = clone->base, start = clone->start;
	struct live *live = live_find(h, clone->name);
	struct layer_state unused;
	int x;

	clone->base = *to;
	clone->start = (struct catalog_id){ 0 };
	if (!live)
		x = put_both(h, r, clone, err);
	else {
		layer_set_base(live->layer, to);
		x = layer_persist(live->layer, BATCH_SAFE, put_settled, r, &unused, err);
		if (x < 0)
			layer_set_base(live->layer, &from);
	}
	clone->base = from;
	clone->start = start;
	return x;
}

/* Has it still the base that it is to leave, and is the other one still there? */
static int may_move(struct host *h, const struct receipt *r, const struct clone *clone,
		    const struct catalog_id **ret_to, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot to = { 0 };
	const bool done = r->state == RECEIPT_DONE;
	int x;

	*ret_to = done ? &r->next_base : &r->base;
	if (!catalog_id_same(&clone->project, &r->project) || clone->created >= r->created ||
	    !catalog_id_same(&clone->base, done ? &r->base : &r->next_base))
		return 0;
	x = snapshot_get(h->store, *ret_to, &to, err);
	return x == -ENOENT ? 0 : x < 0 ? x : 1;
}

static int settle_turn(struct host *h, const struct catalog_id *id, struct err *err)
{
	CLEANUP(receipt_done) struct receipt r = { 0 };
	CLEANUP(clone_done) struct clone clone = { 0 };
	const struct catalog_id *to;
	int x = receipt_get(h->store, id, &r, err);

	if (x < 0 || r.base_due == 0)
		return x == -ENOENT ? 0 : x;
	r.base_due = 0;
	x = clone_get(h->store, r.clone, &clone, err);
	if (x >= 0)
		x = may_move(h, &r, &clone, &to, err);
	if (x > 0)
		return move_base(h, &clone, to, &r, err);
	return x < 0 && x != -ENOENT ? x : put_both(h, &r, NULL, err);
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
	/* From the look whether a snapshot is there to the commit that names it (forget-i.h). */
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
