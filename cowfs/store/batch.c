/*
 * The path of a put. The id is looked up among the pending objects, then in the database; a hit is
 * compared byte by byte. A miss is packed in the calling thread and becomes a `struct
 * pending_object`, shared by all batches that put the same bytes. A batch writes its pending
 * objects at its commit: in a transaction on chunks.db, synced, then in one on meta.db that holds
 * recipes, trees, attribute sets and refs. Large batches write earlier too, in pieces and without
 * refs, so that others can commit in between and memory stays bounded. A crash between the two
 * leaves chunks without a name, which gc removes, never a name without its chunks.
 *
 * An object leaves `pending` only after the transaction that stored it, so at any time it is found
 * in one of the two places. Two threads may still both miss and both pack; the second finds the
 * first in `pending`, or, later still, the insert meets the unique index and compares then
 * (keep_existing()).
 */
#include <assert.h>
#include <errno.h>

#include "cowfs/store/batch-i.h"
#include "cowfs/store/pin.h"

struct store *batch_store(const struct batch *b)
{
	return b->store;
}

uint64_t batch_appended(const struct batch *b)
{
	return b->appended;
}

void batch_add_ref_op(struct batch *b, struct ref_op *op)
{
	*b->ref_ops_end = op;
	b->ref_ops_end = &op->next;
}

void batch_expect_new(struct batch *b)
{
	b->expects_new = true;
}

void batch_expect_passing_trees(struct batch *b)
{
	b->expects_passing_trees = true;
}

int batch_begin(struct store *s, struct batch **ret, struct err *err)
{
	struct batch *b;

	if (s->mode == STORE_READ)
		return err_set(err, -EROFS, "store '%s' is open for reading only", s->path);
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err);
	b->store = s;
	b->ref_ops_end = &b->ref_ops;
	pthread_mutex_lock(&s->lock);
	b->next = s->batches;
	s->batches = b;
	pthread_mutex_unlock(&s->lock);
	*ret = b;
	return 0;
}

int batch_pin(struct batch *b, const struct object_id *tree, struct err *err)
{
	int r;

	if (buf_reserve(&b->pinned, sizeof(*tree)) < 0)
		return err_nomem(err);
	r = store_pin(b->store, OBJECT_TREE, tree, err);
	if (r < 0)
		return r;
	IGNORE_RESULT(buf_append(&b->pinned, tree, sizeof(*tree)), "there is room");
	return r;
}

static void unpin_all(struct batch *b)
{
	struct object_id tree;

	for (size_t at = 0; at < b->pinned.len; at += sizeof(tree)) {
		memcpy(&tree, b->pinned.data + at, sizeof(tree));
		store_unpin(b->store, OBJECT_TREE, &tree);
	}
	buf_done(&b->pinned);
}

void batch_end(struct batch *b)
{
	struct batch **at;
	struct store *s;

	if (!b)
		return;
	s = b->store;
	pthread_mutex_lock(&s->lock);
	for (at = &s->batches; *at != b; at = &(*at)->next)
		;
	*at = b->next;
	for (size_t i = 0; i < b->n_held; i++)
		batch_let_go(b, b->held[i]);
	pthread_mutex_unlock(&s->lock);
	unpin_all(b);
	ref_ops_free(b->ref_ops);
	free(b->held);
	free(b->touched);
	free(b);
}

/* Takes the caller's reference to `p`: another thread may store it meanwhile and let it go. */
static int compare_pending(struct reader *rd, struct pending_object *p, const void *data,
			   size_t len, struct err *err)
{
	struct store *s = rd->store;
	int r = object_unpack(rd->codec, p->packed, p->len, OBJECT_SIZE_MAX, &rd->raw, err);

	r = r < 0 ? r : object_compare(&s->key, &p->what, &rd->raw, data, len, err);
	LOCKED(&s->lock);
	pending_object_unref(s, p);
	return r;
}

/* Is it in the database?  1: as it should be, and the batch depends on its row.  0. */
static int find_stored(struct batch *b, struct reader *rd, const struct object_ref *key,
		       const void *data, size_t len, uint64_t gcs_ended, struct err *err)
{
	struct row row;
	int r = object_fetch(rd->db[table_of(key->kind)], rd->codec, key->kind, &key->id, &rd->raw,
			     &row, err);

	if (r <= 0)
		return r;
	r = object_compare(&b->store->key, key, &rd->raw, data, len, err);
	if (r < 0)
		return r;
	r = batch_touch_found(b, row, gcs_ended);
	return r < 0 ? err_nomem(err) : r;
}

static int put_with(struct batch *b, struct reader *rd, const struct object_ref *key,
		    const void *data, size_t len, struct err *err)
{
	const bool passing = b->expects_passing_trees && key->kind == OBJECT_TREE;
	struct pending_object *p = NULL;
	uint64_t gcs_ended;
	int r = batch_take_pending(b, key, &p, &gcs_ended);

	if (r < 0)
		return err_nomem(err);
	if (r > 0)
		return compare_pending(rd, p, data, len, err);

	r = b->expects_new || passing ? 0 : find_stored(b, rd, key, data, len, gcs_ended, err);
	if (r != 0)
		return r < 0 ? r : 0;

	buf_reset(&rd->packed);
	r = passing ? object_frame(data, len, &rd->packed, err)
		    : object_pack(rd->codec, data, len, &rd->packed, err);
	if (r < 0)
		return r;
	r = batch_make_pending(b, key, &rd->packed, &p);
	if (r < 0)
		return err_nomem(err);
	return r == 1 ? 1 : compare_pending(rd, p, data, len, err);
}

int batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
	      struct object_id *ret_id, struct err *err)
{
	struct store *s = b->store;
	struct object_ref key = { .kind = kind };
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	bool full = false;
	int r, fresh;

	assert(len <= object_kind_max(kind) && !b->committed);
	key.id = object_id_of(&s->key, kind, data, len);
	r = reader_take(s, &rd, err);
	if (r < 0)
		return r;
	fresh = put_with(b, rd, &key, data, len, err);
	if (fresh < 0)
		return fresh;
	if (fresh) {
		pthread_mutex_lock(&s->lock);
		full = b->pending_bytes[table_of(kind)] > BATCH_PENDING_MAX;
		pthread_mutex_unlock(&s->lock);
	}
	if (full)
		r = batch_write_pending(b, table_of(kind), err);
	if (r < 0)
		return r;
	*ret_id = key.id;
	return fresh;
}
