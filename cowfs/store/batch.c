/*
 * How a put travels.  The id is looked up among the pending objects, then in the
 * database; a hit is compared byte by byte.  A miss is packed in the calling thread
 * and becomes a `struct pending`, shared by all batches that put the same bytes.
 * A batch writes its pending objects at its commit, chunks alone when they take too
 * much memory: in one transaction on chunks.db, synced, then one on meta.db that
 * holds recipes, trees, attribute sets and refs.  A crash between the two leaves
 * chunks without a name, which gc takes, never a name without its chunks.
 *
 * An object leaves `pending` only after the transaction that stored it, so at any
 * time it is found in one of the two places.  Two threads may still both miss and
 * both pack; the second finds the first in `pending`, or, later still, the insert
 * meets the unique index and compares then (keep_existing()).
 */
#include "cowfs/store/batch.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cowfs/store/store-i.h"

struct pending {
	struct object_ref what;   /* its key in store->pending */
	unsigned refs;            /* batches that hold it; guarded by store->lock */
	const struct batch *last; /* the last that took it, so that one batch holds it about once */
	struct row stored;        /* seq 0 until it is in the database; guarded by store->lock */
	size_t len;
	uint8_t packed[]; /* never changes */
};
/* Growing arrays, guarded by store->lock. */
struct batch {
	struct store *store;
	struct batch *next;
	struct pending **held; /* objects it put that may not be in the database yet */
	size_t n_held, cap_held;
	struct row *touched; /* rows of the database that it depends on */
	size_t n_touched, cap_touched;
	size_t pending_bytes; /* packed bytes of held chunks that are not stored */

	struct ref_op *ref_ops; /* the committing thread's own */
	bool committed;
};

struct store *batch_store(const struct batch *b)
{
	return b->store;
}

struct ref_op **batch_ref_ops(struct batch *b)
{
	return &b->ref_ops;
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
	pthread_mutex_lock(&s->lock);
	b->next = s->batches;
	s->batches = b;
	pthread_mutex_unlock(&s->lock);
	*ret = b;
	return 0;
}

/* lock held */
static void unref(struct store *s, struct pending *p)
{
	if (--p->refs > 0)
		return;
	if (!p->stored.seq)
		map_remove(&s->pending, &p->what);
	free(p);
}

/* The batch holds it no longer; its address may belong to another batch one day.  lock held */
static void let_go(struct batch *b, struct pending *p)
{
	if (p->last == b)
		p->last = NULL;
	unref(b->store, p);
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
		let_go(b, b->held[i]);
	pthread_mutex_unlock(&s->lock);
	ref_ops_free(b->ref_ops);
	free(b->held);
	free(b->touched);
	free(b);
}

void batches_keep(struct store *s, struct gc *g)
{
	for (struct batch *b = s->batches; b; b = b->next) {
		for (size_t i = 0; i < b->n_touched; i++)
			gc_keep(g, b->touched[i]);
		for (size_t i = 0; i < b->n_held; i++)
			if (b->held[i]->stored.seq)
				gc_keep(g, b->held[i]->stored);
	}
}

/* --- putting ---------------------------------------------------------------------------- */

static int grow(void *array, size_t *cap, size_t n, size_t item)
{
	size_t want = *cap ? 2 * *cap : 64;
	void *p;

	if (n < *cap)
		return 0;
	p = reallocarray(*(void **)array, want, item);
	if (!p)
		return -ENOMEM;
	*(void **)array = p;
	*cap = want;
	return 0;
}

/* lock held */
static int hold(struct batch *b, struct pending *p)
{
	if (p->last == b)
		return 0;
	if (grow(&b->held, &b->cap_held, b->n_held, sizeof(struct pending *)) < 0)
		return -ENOMEM;
	b->held[b->n_held++] = p;
	p->refs++;
	p->last = b;
	if (p->what.kind == OBJECT_CHUNK && !p->stored.seq)
		b->pending_bytes += p->len;
	return 0;
}

/* Depend on a row of the database.  lock held */
static int touch(struct batch *b, struct row row)
{
	if (grow(&b->touched, &b->cap_touched, b->n_touched, sizeof(struct row)) < 0)
		return -ENOMEM;
	b->touched[b->n_touched++] = row;
	return 0;
}

/*
 * The same for a row found since `gcs_ended` gcs had ended.  1; 0 if a gc has given it up
 * meanwhile, or may have; -ENOMEM.
 */
static int touch_found(struct batch *b, struct row row, uint64_t gcs_ended)
{
	struct store *s = b->store;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->gcs_ended == gcs_ended && (!s->gc || gc_keep(s->gc, row)))
		r = touch(b, row) < 0 ? -ENOMEM : 1;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* The stored bytes under this id are not the ones being put: say which of two evils it is. */
static int refuse(struct store *s, enum object_kind kind, const struct object_id *id,
		  const struct buf *stored, struct err *err)
{
	struct object_id actual = object_id_of(&s->key, kind, stored->data, stored->len);
	char hex[OBJECT_HEX_SIZE];

	if (!object_id_equal(&actual, id))
		return object_damaged(err, kind, id, "its bytes do not match its id");
	return err_set(err, -EEXIST,
		       "%s %s exists with other bytes; two contents cannot share an id",
		       object_kind_name(kind), object_id_hex(id, hex));
}

static int compare(struct store *s, enum object_kind kind, const struct object_id *id,
		   const struct buf *stored, const void *data, size_t len, struct err *err)
{
	if (stored->len == len && (len == 0 || memcmp(stored->data, data, len) == 0))
		return 0;
	return refuse(s, kind, id, stored, err);
}

/* Takes the caller's reference to `p`: another thread may store it meanwhile and let it go. */
static int compare_pending(struct reader *rd, struct pending *p, const void *data, size_t len,
			   struct err *err)
{
	struct store *s = rd->store;
	int r;

	r = object_unpack(rd->codec, p->packed, p->len, OBJECT_SIZE_MAX, &rd->raw, err);
	if (r >= 0)
		r = compare(s, p->what.kind, &p->what.id, &rd->raw, data, len, err);
	pthread_mutex_lock(&s->lock);
	unref(s, p);
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* lock held */
static int hold_and_ref(struct batch *b, struct pending *p)
{
	if (hold(b, p) < 0)
		return -ENOMEM;
	p->refs++;
	return 0;
}

/*
 * Is it pending?  1: held by this batch, and *ret a reference of the caller's.  0.  -ENOMEM.
 * *ret_gcs_ended is for touch_found().
 */
static int take_pending(struct batch *b, const struct object_ref *key, struct pending **ret,
			uint64_t *ret_gcs_ended)
{
	struct store *s = b->store;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	*ret_gcs_ended = s->gcs_ended;
	*ret = map_get(&s->pending, key);
	if (*ret)
		r = hold_and_ref(b, *ret) < 0 ? -ENOMEM : 1;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* Make it pending.  1: new.  0: another thread was faster, and *ret is as take_pending() has it. */
static int make_pending(struct batch *b, const struct object_ref *key, struct reader *rd,
			struct pending **ret)
{
	struct store *s = b->store;
	AUTO_FREE struct pending *p = malloc(sizeof(*p) + rd->packed.len);
	void *there = NULL;
	int r;

	if (!p)
		return -ENOMEM;
	*p = (struct pending){ .what = *key, .len = rd->packed.len };
	memcpy(p->packed, rd->packed.data, p->len);

	pthread_mutex_lock(&s->lock);
	r = map_add(&s->pending, &p->what, p, &there);
	if (r == 1) {
		*ret = there;
		r = hold_and_ref(b, there);
	} else if (r == 0 && hold(b, p) < 0) {
		map_remove(&s->pending, &p->what);
		r = -ENOMEM;
	} else if (r == 0) {
		TAKE_PTR(p);
		r = 1;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static int write_chunks(struct batch *b, struct err *err);

static int put_with(struct batch *b, struct reader *rd, const struct object_ref *key,
		    const void *data, size_t len, struct err *err)
{
	struct store *s = b->store;
	struct pending *p = NULL;
	uint64_t gcs_ended;
	struct row row;
	int r;

	r = take_pending(b, key, &p, &gcs_ended);
	if (r < 0)
		return err_nomem(err);
	if (r > 0)
		return compare_pending(rd, p, data, len, err);

	r = object_fetch(rd->db[table_of(key->kind)], rd->codec, key->kind, &key->id, &rd->raw,
			 &row, err);
	if (r > 0) {
		r = compare(s, key->kind, &key->id, &rd->raw, data, len, err);
		if (r < 0)
			return r;
		r = touch_found(b, row, gcs_ended);
		if (r != 0)
			return r < 0 ? err_nomem(err) : 0;
	}
	if (r < 0)
		return r;

	buf_reset(&rd->packed);
	r = object_pack(rd->codec, data, len, &rd->packed, err);
	if (r < 0)
		return r;
	r = make_pending(b, key, rd, &p);
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
	bool full;
	int r, fresh;

	assert(len <= object_kind_max(kind) && !b->committed);
	key.id = object_id_of(&s->key, kind, data, len);
	r = reader_take(s, &rd, err);
	if (r < 0)
		return r;
	fresh = put_with(b, rd, &key, data, len, err);
	if (fresh < 0)
		return fresh;
	if (fresh && kind == OBJECT_CHUNK) {
		pthread_mutex_lock(&s->lock);
		full = b->pending_bytes > BATCH_PENDING_MAX;
		pthread_mutex_unlock(&s->lock);
		if (full) {
			pthread_mutex_lock(&s->write_lock);
			r = write_chunks(b, err);
			pthread_mutex_unlock(&s->write_lock);
			if (r < 0)
				return r;
		}
	}
	*ret_id = key.id;
	return fresh;
}

/* --- writing ---------------------------------------------------------------------------- */

/* Objects of one table that a transaction writes, with the rows they got. */
struct writing {
	struct pending **list; /* owned array of borrowed objects: the batch holds them */
	struct row *rows;      /* owned */
	size_t n;
};

static void writing_done(struct writing *w)
{
	free(w->list);
	free(w->rows);
}

static int writing_collect(struct batch *b, enum table t, struct writing *w, struct err *err)
{
	struct store *s = b->store;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	w->list = reallocarray(NULL, b->n_held + 1, sizeof(*w->list));
	w->rows = reallocarray(NULL, b->n_held + 1, sizeof(*w->rows));
	if (!w->list || !w->rows)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < b->n_held; i++)
		if (table_of(b->held[i]->what.kind) == t && !b->held[i]->stored.seq)
			w->list[w->n++] = b->held[i];
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? err_nomem(err) : 0;
}

/* The insert met a row with this id after all: it must hold the same bytes. */
static int keep_existing(struct store *s, struct pending *p, struct row *ret, struct err *err)
{
	CLEANUP(buf_done) struct buf stored = BUF_INIT, ours = BUF_INIT;
	int r;

	r = object_unpack(s->write_codec, p->packed, p->len, OBJECT_SIZE_MAX, &ours, err);
	if (r < 0)
		return r;
	r = object_fetch(s->writer[table_of(p->what.kind)], s->write_codec, p->what.kind,
			 &p->what.id, &stored, ret, err);
	if (r < 0)
		return r;
	assert(r == 1);
	return compare(s, p->what.kind, &p->what.id, &stored, ours.data, ours.len, err);
}

static int insert(struct store *s, struct db_query *q, struct pending *p, struct row *ret,
		  struct err *err)
{
	enum table t = table_of(p->what.kind);
	int64_t seq = s->next_seq[t];
	int r, at = 0;

	query_bind_int(q, at++, seq);
	if (t == TABLE_META)
		query_bind_int(q, at++, p->what.kind);
	query_bind_blob(q, at++, p->what.id.b, sizeof(p->what.id.b));
	query_bind_int(q, at++,
		       (int64_t)object_row_sum(seq, p->what.kind, &p->what.id, p->packed, p->len));
	query_bind_blob(q, at++, p->packed, p->len);
	r = query_run(q, err);
	if (r < 0)
		return r;
	if (db_changes(s->writer[t]) == 0)
		return keep_existing(s, p, ret, err);
	s->next_seq[t]++;
	*ret = (struct row){ .table = t, .seq = seq };
	return 0;
}

/* Inside a transaction. */
static int insert_all(struct store *s, enum table t, struct writing *w, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "INSERT INTO object(seq, kind, id, sum, data)"
			       " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(id, kind) DO NOTHING",
		[TABLE_CHUNKS] = "INSERT INTO chunk(seq, id, sum, data)"
				 " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(id) DO NOTHING",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r;

	r = db_query(s->writer[t], sql[t], &q, err);
	for (size_t i = 0; i < w->n && r >= 0; i++)
		r = insert(s, q, w->list[i], &w->rows[i], err);
	return r;
}

/*
 * The transaction is committed: its objects are in the database now.  What is there,
 * by this batch or another, needs no memory beyond the number of its row.
 */
static void publish(struct batch *b, struct writing *w)
{
	struct store *s = b->store;
	size_t kept = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < w->n; i++) {
		map_remove(&s->pending, &w->list[i]->what);
		w->list[i]->stored = w->rows[i];
		/* An insert that met an existing row relies on an old one.  invariant 5 */
		if (s->gc)
			gc_keep(s->gc, w->rows[i]);
	}
	b->pending_bytes = 0;
	for (size_t i = 0; i < b->n_held; i++) {
		struct pending *p = b->held[i];

		/* Where memory is short the object itself goes on doing. */
		if (p->stored.seq && touch(b, p->stored) == 0) {
			let_go(b, p);
			continue;
		}
		if (p->what.kind == OBJECT_CHUNK && !p->stored.seq)
			b->pending_bytes += p->len;
		b->held[kept++] = p;
	}
	b->n_held = kept;
	pthread_mutex_unlock(&s->lock);
}

/* Write the chunks that are pending in this batch.  write_lock held. */
static int write_chunks(struct batch *b, struct err *err)
{
	CLEANUP(writing_done) struct writing w = { 0 };
	struct store *s = b->store;
	struct db *db = s->writer[TABLE_CHUNKS];
	int r;

	r = writing_collect(b, TABLE_CHUNKS, &w, err);
	if (r < 0)
		return r;
	if (w.n == 0) {
		publish(b, &w); /* another batch may have stored what this one holds */
		return 0;
	}
	r = db_begin_write(db, err);
	if (r < 0)
		return r;
	r = insert_all(s, TABLE_CHUNKS, &w, err);
	if (r < 0) {
		db_rollback(db);
		return r;
	}
	r = db_commit(db, err);
	if (r < 0)
		return r;
	s->chunks_unsynced = true;
	publish(b, &w);
	store_relieve_logs(s);
	return 0;
}

/* Objects and refs of meta.db.  write_lock held. */
static int write_meta(struct batch *b, enum batch_durability durability, struct err *err)
{
	CLEANUP(writing_done) struct writing w = { 0 };
	struct store *s = b->store;
	struct db *db = s->writer[TABLE_META];
	int r;

	r = writing_collect(b, TABLE_META, &w, err);
	if (r < 0 || (w.n == 0 && !b->ref_ops))
		return r;
	r = db_set_sync(db, durability == BATCH_DURABLE, err);
	if (r < 0)
		return r;
	r = db_begin_write(db, err);
	if (r < 0)
		return r;
	r = insert_all(s, TABLE_META, &w, err);
	if (r >= 0)
		r = ref_apply(db, b->ref_ops, err);
	if (r < 0) {
		db_rollback(db);
		return r;
	}
	r = db_commit(db, err);
	if (r < 0)
		return r;
	publish(b, &w);
	return 0;
}

int batch_commit(struct batch *b, enum batch_durability durability, struct err *err)
{
	struct store *s = b->store;
	int r;

	assert(!b->committed);
	pthread_mutex_lock(&s->write_lock);
	r = write_chunks(b, err);
	if (r >= 0)
		r = store_sync_chunks(s,
				      err); /* invariant 3: names after chunks, on the disk too */
	if (r >= 0)
		r = write_meta(b, durability, err);
	if (r >= 0) {
		b->committed = true;
		store_relieve_logs(s);
	}
	pthread_mutex_unlock(&s->write_lock);
	return r < 0 ? r : 0;
}
