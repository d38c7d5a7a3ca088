/*
 * op.c - one operation of a layer: its lock, what it lacks, and its repetition.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cowfs/core/halves-i.h"
#include "cowfs/core/layer-i.h"
#include "cowfs/core/listing-i.h"

struct op op_begin(struct layer *l, const struct layer_call *call, struct err *err)
{
	pthread_mutex_lock(&l->lock);
	return (struct op){ .l = l, .call = call, .err = err };
}

void op_end(struct op *op)
{
	if (op->has_turn)
		layer_end_turn(op->l);
	pthread_mutex_unlock(&op->l->lock);
	while (op->n_held > 0)
		cached_unref(op->held[--op->n_held]);
	listing_free(op->listing);
	free(op->block.data);
}

/* What was held for an earlier try has served; the newest stay, in case memory is short. */
static void hold(struct op *op, const struct cached *o)
{
	if (op->n_held == OP_HELD_MAX) {
		cached_unref(op->held[0]);
		memmove(op->held, op->held + 1, (OP_HELD_MAX - 1) * sizeof(op->held[0]));
		op->n_held--;
	}
	op->held[op->n_held++] = o;
}

/* A program that lists a directory asks for the same tree once for each name. */
static const struct cached *find_newest(const struct op *op, enum object_kind kind,
					const struct object_id *id)
{
	const struct cached *o = op->n_held > 0 ? op->held[op->n_held - 1] : NULL;

	return o && o->what.kind == kind && object_id_equal(&o->what.id, id) ? o : NULL;
}

int op_object(struct op *op, enum object_kind kind, const struct object_id *id,
	      const struct cached **ret)
{
	const struct cached *o = find_newest(op, kind, id);

	if (o) {
		*ret = o;
		return 0;
	}
	o = cache_find(op->l->cache, kind, id);
	if (!o)
		return need_object(&op->need, kind, id);
	hold(op, o);
	*ret = o;
	return 0;
}

/* Without the lock. */
static int get_object(struct op *op)
{
	const struct object_ref *what = &op->need.object;
	const struct cached *o;
	int r = layers_load(op->l->all, what->kind, &what->id, &o, op->err);

	if (r < 0)
		return r;
	hold(op, o);
	return r;
}

/*
 * Where a directory is persisted faster than its names can be read, those that were read are
 * always of another tree; a caller that met that once keeps persists away while it reads.
 */
static int get_listing(struct op *op)
{
	struct layer *l = op->l;
	int r;

	if (op->listing && !op->has_turn) {
		layer_take_turn(l);
		op->has_turn = true;
		return 0;
	}
	pthread_mutex_unlock(&l->lock);
	listing_free(op->listing);
	op->listing = NULL;
	layers_count_wait(l->all);
	r = listing_load(l->cache, &op->need.object.id, &op->listing, op->err);
	pthread_mutex_lock(&l->lock);
	return r;
}

/* Without the lock.  If they do not come, the whole promise is to be kept, which says why. */
static int get_block(struct op *op)
{
	const struct need *need = &op->need;
	ssize_t n;

	if (!op->block.data)
		op->block.data = malloc(FILE_BLOCK);
	if (!op->block.data)
		return -ENOMEM;
	n = layers_peek_promise(op->l->all, &need->object.id, need->number * FILE_BLOCK,
				op->block.data, FILE_BLOCK);
	op->block.promise = need->object.id;
	op->block.number = need->number;
	op->block.len = n > 0 ? (size_t)n : 0;
	return 0;
}

static int get_surety(struct op *op)
{
	op->sure = layers_hurry_promise(op->l->all, &op->need.object.id) > 0;
	op->asked = op->need.object.id;
	return 0;
}

/* Without the lock. */
static int get_unlocked(struct op *op, int (*fn)(struct op *op))
{
	int r;

	pthread_mutex_unlock(&op->l->lock);
	r = fn(op);
	pthread_mutex_lock(&op->l->lock);
	return r;
}

/* Programs that rename give up on EBUSY; names are held for less than that, unless the machine is busy. */
#define NAMES_WAIT_MS 2000

/* Each takes a thread of the mount, and the kernel lets nobody look up a name in its directories meanwhile. */
#define NAMES_WAITING_MAX 8

static int wait_for_names(struct layer *l)
{
	const uint64_t began = clock_ms();
	int r = 0;

	if (l->names_waiting == NAMES_WAITING_MAX)
		return -EBUSY;
	l->names_waiting++;
	for (uint64_t now = began; l->names_held > 0 && now < l->names_until; now = clock_ms()) {
		const uint64_t left = l->names_until - now, wait = began + NAMES_WAIT_MS - now;

		if (now >= began + NAMES_WAIT_MS) {
			r = -EBUSY;
			break;
		}
		sys_cond_wait_ms(&l->calm, &l->lock, left < wait ? left : wait);
	}
	l->names_waiting--;
	return r;
}

static int get(struct op *op)
{
	struct layer *l = op->l;
	int r = 0;

	switch (op->need.kind) {
	case NEED_OBJECT:
		r = get_unlocked(op, get_object);
		break;
	case NEED_LISTING:
		r = get_listing(op);
		break;
	case NEED_ROOM:
		pthread_mutex_unlock(&l->lock);
		r = layers_wait_room(l->all, l);
		pthread_mutex_lock(&l->lock);
		break;
	case NEED_CALM:
		while (l->switching || l->holding)
			pthread_cond_wait(&l->calm, &l->lock);
		break;
	case NEED_NAMES:
		r = wait_for_names(l);
		break;
	case NEED_PROMISE:
		pthread_mutex_unlock(&l->lock);
		r = layers_keep_promise(l->all, &op->need.object.id, &op->content, op->err);
		pthread_mutex_lock(&l->lock);
		if (r >= 0)
			op->promise = op->need.object.id;
		break;
	case NEED_SURETY:
		r = get_unlocked(op, get_surety);
		break;
	case NEED_BLOCK:
		r = get_unlocked(op, get_block);
		break;
	}
	/* The file may stand on something else by now, and its promise be forgotten. */
	if (r == -ESTALE && op->need.kind == NEED_PROMISE)
		return op->tries++ == 0 ? 0 : -EIO;
	/* What it was needed for may have been replaced, stored anew and swept meanwhile. */
	return r == -EBADMSG && op->tries++ == 0 ? 0 : r;
}

static bool may_get(const struct op *op)
{
	return op->call->may_wait ||
	       (op->need.kind == NEED_OBJECT && layers_load_quickly(op->l->all));
}

bool op_again(struct op *op, int *r)
{
	if (*r != -EAGAIN || !may_get(op))
		return false;
	*r = get(op);
	return *r >= 0;
}

static int wait_for_calm(struct op *op)
{
	op->need = (struct need){ .kind = NEED_CALM };
	return -EAGAIN;
}

int op_may_change(struct op *op)
{
	if (layer_is_warm(op->l))
		return -EROFS;
	return op->l->switching ? wait_for_calm(op) : 0;
}

int op_may_write(struct op *op, uint64_t node, uint64_t off)
{
	int r = op_may_change(op);

	if (r < 0)
		return r;
	if (op->l->holding && !halves_let_in(op->l, op->call, node, off))
		r = wait_for_calm(op);
	return r;
}

int op_may_load(struct op *op)
{
	return op->l->sealed ? wait_for_calm(op) : 0;
}

struct timespec layer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t;
}

void layer_await_turn(struct layer *l)
{
	l->waiting++;
	pthread_cond_wait(&l->calm, &l->lock);
	l->waiting--;
}

bool layer_is_taken(const struct layer *l)
{
	return l->turns_ended != l->turns_asked;
}

void layer_take_turn(struct layer *l)
{
	const uint64_t mine = l->turns_asked++;

	while (l->turns_ended != mine)
		layer_await_turn(l);
}

void layer_end_turn(struct layer *l)
{
	l->turns_ended++;
	l->whole_only = false;
	pthread_cond_broadcast(&l->calm);
}

void layer_mark(struct layer *l)
{
	if (l->marked)
		return;
	l->marked = true;
	l->dirty_since = layers_clock();
	layers_was_marked(l->all);
}
