/*
 * persist.c - a freeze and its commit, one at a time.
 */
#include <errno.h>

#include "cowfs/core/halves-i.h"
#include "cowfs/core/persist-i.h"

/* What the clone will say of itself; its name is borrowed. */
static struct clone next_record(const struct layer *l)
{
	struct clone record = l->record;

	record.next_ino = l->next_ino;
	record.grown = l->grown - l->loose;
	record.meta = l->meta - l->loose_meta;
	return record;
}

static int put_all(struct persist *p, struct batch **b, struct err *err)
{
	int r = batch_begin(layers_store(p->l->all), b, err);

	if (r < 0)
		return r;
	r = freeze_put(p->frozen, *b, !p->unwaited, &p->state, err);
	if (r < 0)
		return r;
	if (p->looks)
		r = batch_commit(*b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	if (p->also)
		r = p->also(*b, &p->state, p->ctx, err);
	if (r < 0 || p->looks)
		return r;
	p->record.root = p->state.id;
	r = clone_put(*b, &p->record, REF_REPLACE, err);
	return r < 0 ? r : batch_commit(*b, p->durability, err);
}

int persist_run(struct persist *p, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct layer *l = p->l;
	uint64_t number;
	int r = freeze_collect(l, &p->frozen);

	halves_release(l);
	if (r < 0)
		return err_nomem(err);
	l->whole_only = false;
	number = ++l->freezes;
	l->hurry_at = 0;
	p->record = next_record(l);
	pthread_mutex_unlock(&l->lock);

	r = put_all(p, &b, err);
	pthread_mutex_lock(&l->lock);
	if (b)
		sweep_charge(l, batch_appended(b));
	/* The batch is still open: it holds what a file without a name needs until that is pinned. */
	freeze_settle(l, p->frozen, r >= 0 && !p->looks);
	if (p->looks)
		return r;
	l->failed = r < 0 ? r : 0;
	if (r < 0)
		return r;
	l->record.root = p->record.root;
	sweep_count_freed(l);
	l->state = p->state;
	l->persisted = number;
	if (p->durability == BATCH_DURABLE)
		l->durable = number;
	else if (l->record.strict)
		layers_harden_soon(l->all);
	layers_count_persist(l->all);
	return 0;
}

static int persist_in_turn(struct persist *p, struct layer_state *ret, struct err *err)
{
	struct layer *l = p->l;
	int r = 0;

	LOCKED(&l->lock);
	layer_take_turn(l);
	r = partly_keep(l, err);
	/* What nobody will look at as a state may hold half a write. */
	if (r >= 0 && p->also)
		halves_hold(l);
	if (r >= 0 && (l->marked || p->also || p->durability == BATCH_DURABLE))
		r = persist_run(p, err);
	if (r >= 0)
		*ret = l->state;
	layer_end_turn(l);
	return r < 0 ? err_wrap(err, r, "clone '%s'", layer_name(l)) : 0;
}

int layer_persist(struct layer *l, enum batch_durability durability, layer_also_fn also, void *ctx,
		  struct layer_state *ret, struct err *err)
{
	struct persist p = { .l = l, .durability = durability, .also = also, .ctx = ctx };

	return persist_in_turn(&p, ret, err);
}

int persist_aside(struct layer *l, struct err *err)
{
	struct persist p = { .l = l, .durability = BATCH_SAFE, .unwaited = true };
	struct layer_state state;

	return persist_in_turn(&p, &state, err);
}

int layer_look(struct layer *l, layer_also_fn also, void *ctx, struct layer_state *ret,
	       struct err *err)
{
	struct persist p = { .l = l, .also = also, .ctx = ctx, .looks = true };
	int r;

	pthread_mutex_lock(&l->lock);
	layer_take_turn(l);
	r = partly_keep(l, err);
	if (r >= 0) {
		halves_hold(l);
		r = persist_run(&p, err);
	}
	layer_end_turn(l);
	pthread_mutex_unlock(&l->lock);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", layer_name(l));
	*ret = p.state;
	return 0;
}

/* What this layer has committed survives power loss; many layers share one wait for the disk. */
static int harden(struct layer *l, uint64_t number, struct err *err)
{
	int r = store_harden(layers_store(l->all), err);

	if (r < 0)
		return r;
	LOCKED(&l->lock);
	if (l->durable < number)
		l->durable = number;
	return 0;
}

/* Another sync waits for its turn, or a persist runs that was begun late enough. */
static bool is_on_its_way(const struct layer *l, uint64_t number)
{
	if (l->persisted >= number)
		return false;
	return l->sync_asked || (l->freezes >= number && layer_is_taken(l) && l->failed == 0);
}

static int keep_and_persist(struct persist *p, struct err *err)
{
	int r = partly_keep(p->l, err);

	if (r == -EIO)
		r = partly_keep(p->l, err); /* what is lost is a promise like others now */
	return r < 0 ? r : persist_run(p, err);
}

/* A caller that waits for a persist that began after its call needs none of its own. */
int layer_sync(struct layer *l, uint64_t node, struct err *err)
{
	struct persist p = { .l = l, .durability = BATCH_SAFE };
	uint64_t number;
	bool owed;
	int r;

	if (l->passing)
		return 0;
	r = sweep_await(l);
	pthread_mutex_lock(&l->lock);
	if (r < 0 && l->marked) {
		pthread_mutex_unlock(&l->lock);
		return r; /* the log has a sentence (sweep.c) */
	}
	r = 0;
	l->synced[l->next_synced++ % LAYER_SYNCED] = node;
	number = l->freezes + 1;
	while (is_on_its_way(l, number))
		layer_await_turn(l);
	if (l->persisted < number && (l->marked || layer_is_taken(l))) {
		l->sync_asked = true;
		layer_take_turn(l);
		l->sync_asked = false;
		/* If somebody has persisted it meanwhile, what was changed since is not waited for. */
		if (l->persisted < number && l->marked)
			r = keep_and_persist(&p, err);
		layer_end_turn(l);
	}
	if (r >= 0 && partly_is_lost(l, node))
		r = err_set(err, -EIO, "data written to the file is lost");
	number = l->persisted;
	/* What the committer persisted meanwhile may not be on the disk yet. */
	owed = l->record.strict && l->durable < number;
	pthread_mutex_unlock(&l->lock);
	return r >= 0 && owed ? harden(l, number, err) : r;
}
