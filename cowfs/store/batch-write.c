#include <assert.h>
#include <errno.h>

#include "cowfs/store/batch-i.h"
#include "cowfs/store/carry-i.h"

/* What a transaction writes: objects of one table, with the rows they got, and refs. */
struct writing {
	struct pending_object **list; /* owned array of borrowed objects: the batch holds them */
	struct row *rows;             /* owned */
	size_t n;
	uint64_t bytes; /* packed */
	enum table table;
	bool durable;
	const struct ref_op *ref_ops;    /* borrowed */
	const struct carrying *carrying; /* borrowed; NULL: the transaction leaves that as it is */
};

static void writing_done(struct writing *w)
{
	free(w->list);
	free(w->rows);
}

/* Objects of `most` bytes, and one at least if there is any. */
static int writing_collect(struct batch *b, enum table t, uint64_t most, struct writing *w,
			   struct err *err)
{
	struct store *s = b->store;
	int r = 0;

	LOCKED(&s->lock);
	w->list = reallocarray(NULL, b->n_held + 1, sizeof(*w->list));
	w->rows = reallocarray(NULL, b->n_held + 1, sizeof(*w->rows));
	if (!w->list || !w->rows)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < b->n_held && w->bytes < most; i++)
		if (table_of(b->held[i]->what.kind) == t && !b->held[i]->stored.seq) {
			w->list[w->n++] = b->held[i];
			w->bytes += b->held[i]->len;
		}
	return r < 0 ? err_nomem(err) : 0;
}

/* The insert met a row with this id after all: it must hold the same bytes. */
static int keep_existing(struct store *s, struct pending_object *p, struct row *ret,
			 struct err *err)
{
	CLEANUP(buf_done) struct buf stored = BUF_INIT, ours = BUF_INIT;
	int r = object_unpack(s->write_codec, p->packed, p->len, OBJECT_SIZE_MAX, &ours, err);

	if (r < 0)
		return r;
	r = object_fetch(s->writer[table_of(p->what.kind)], s->write_codec, p->what.kind,
			 &p->what.id, &stored, ret, err);
	if (r < 0)
		return r;
	assert(r == 1);
	return object_compare(&s->key, &p->what, &stored, ours.data, ours.len, err);
}

static int insert(struct store *s, struct db_query *q, struct pending_object *p, struct row *ret,
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

static int insert_all(struct store *s, struct writing *w, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "INSERT INTO object(seq, kind, id, sum, data)"
			       " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(id, kind) DO NOTHING",
		[TABLE_CHUNKS] = "INSERT INTO chunk(seq, id, sum, data)"
				 " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(id) DO NOTHING",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(s->writer[w->table], sql[w->table], &q, err);

	for (size_t i = 0; i < w->n && r >= 0; i++)
		r = insert(s, q, w->list[i], &w->rows[i], err);
	return r;
}

/* Inside a transaction. */
static int write_all(struct store *s, void *ctx, struct err *err)
{
	struct writing *w = ctx;
	int r = insert_all(s, w, err);

	if (r < 0)
		return r;
	if (w->carrying)
		r = carry_write(s, w->carrying, err);
	return r < 0 ? r : ref_ops_apply(s->writer[w->table], w->ref_ops, err);
}

/* Write what was collected of one table, and the refs with meta.db's.  write_lock held. */
static int write_collected(struct batch *b, struct writing *w, struct err *err)
{
	const struct store_change change = {
		.table = w->table,
		.durable = w->durable,
		.bytes = w->bytes + (w->carrying ? w->carrying->bytes : 0),
		.write = write_all,
		.ctx = w,
	};
	int r;

	if (w->n > 0 || w->ref_ops) {
		r = store_write(b->store, &change, err);
		if (r < 0)
			return r;
	}
	/* Also with nothing to write: another batch may have stored what this one holds. */
	batch_settle(b, w->list, w->rows, w->n);
	return 0;
}

/* --- in pieces ---------------------------------------------------------------------------- */

static size_t pending_bytes(struct batch *b, enum table t)
{
	LOCKED(&b->store->lock);
	return b->pending_bytes[t];
}

/* Commits that came before this piece have their turn first. */
static void lock_for_piece(struct store *s)
{
	uint64_t before;

	pthread_mutex_lock(&s->write_lock);
	before = s->commits_came;
	while (s->commits_begun < before)
		pthread_cond_wait(&s->commits_passed, &s->write_lock);
}

static void lock_for_commit(struct store *s)
{
	s->commits_came++;
	pthread_mutex_lock(&s->write_lock);
	s->commits_begun++;
	pthread_cond_broadcast(&s->commits_passed);
}

/* write_lock held.  1: one was written; 0: none was left. */
static int write_piece(struct batch *b, enum table t, struct err *err)
{
	CLEANUP(writing_done) struct writing w = { .table = t };
	int r = writing_collect(b, t, BATCH_PIECE_MAX, &w, err);

	if (r < 0)
		return r;
	if (t == TABLE_CHUNKS && w.n > 0)
		b->store->uncarried = true;
	r = write_collected(b, &w, err);
	if (r < 0)
		return r;
	store_relieve_logs(b->store);
	return w.n > 0;
}

static int write_pieces(struct batch *b, enum table t, bool sync, struct err *err)
{
	struct store *s = b->store;
	int r;

	do {
		lock_for_piece(s);
		r = write_piece(b, t, err);
		pthread_mutex_unlock(&s->write_lock);
		if (r > 0 && sync) {
			int x = store_sync_aside(s, t, err);

			r = x < 0 ? x : r;
		}
	} while (r > 0 && pending_bytes(b, t) > 0);
	return r < 0 ? r : 0;
}

int batch_write_pending(struct batch *b, enum table t, struct err *err)
{
	return write_pieces(b, t, false, err);
}

/*
 * A commit holds write_lock until it is done, and with it every other: fsync in another clone, too.
 * So what is much is written before, without a name, and what must be on the disk before the names
 * is synced with the lock free.  Where room is short a commit that fails must leave nothing.
 */
static int write_ahead(struct batch *b, bool durable, struct err *err)
{
	struct store *s = b->store;
	const bool waits = b->ref_ops || durable;
	const bool chunks = pending_bytes(b, TABLE_CHUNKS) > CARRY_COMMIT_MAX;
	const bool names = pending_bytes(b, TABLE_META) > BATCH_PIECE_MAX;
	int r = 0;

	if ((chunks || names) && store_room(s) < STORE_ROOM_PLENTY)
		return 0;
	if (chunks)
		r = write_pieces(b, TABLE_CHUNKS, waits, err);
	if (r >= 0 && names)
		r = write_pieces(b, TABLE_META, false, err);
	if (r >= 0 && waits && s->uncarried)
		r = store_sync_aside(s, TABLE_CHUNKS, err);
	return r;
}

/* --- a commit ----------------------------------------------------------------------------- */

/* Hold what was collected beyond batch_settle(). */
static int carry(struct store *s, const struct writing *w, struct carrying *ret)
{
	ret->store = s;
	ret->list = reallocarray(NULL, w->n, sizeof(struct pending_object *));
	if (!ret->list)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < w->n; i++) {
		ret->list[i] = w->list[i];
		w->list[i]->refs++;
	}
	pthread_mutex_unlock(&s->lock);
	ret->n = w->n;
	ret->bytes = w->bytes;
	return 0;
}

/* invariant 3: names after chunks, on the disk too.  Without a name nothing need wait. */
static int write_chunks(struct batch *b, bool durable, struct carrying *ret, struct err *err)
{
	CLEANUP(writing_done) struct writing w = { .table = TABLE_CHUNKS };
	struct store *s = b->store;
	bool carried;
	int r = writing_collect(b, TABLE_CHUNKS, UINT64_MAX, &w, err);

	if (r < 0)
		return r;
	carried = b->ref_ops && carry_may(s, w.n, w.bytes) && (w.n == 0 || carry(s, &w, ret) >= 0);
	if (w.n > 0)
		s->uncarried = true; /* until the names are committed with them */
	r = write_collected(b, &w, err);
	if (r < 0 || carried || (!b->ref_ops && !durable))
		return r;
	return store_sync(s, TABLE_CHUNKS, err);
}

/* write_lock held */
static int write_names(struct batch *b, bool durable, const struct carrying *carrying,
		       struct err *err)
{
	CLEANUP(writing_done) struct writing w = {
		.table = TABLE_META,
		.durable = durable,
		.ref_ops = b->ref_ops,
		.carrying = b->ref_ops ? carrying : NULL,
	};
	int r = writing_collect(b, TABLE_META, UINT64_MAX, &w, err);

	if (r < 0)
		return r;
	r = write_collected(b, &w, err);
	if (r < 0)
		return r;
	if (w.carrying)
		carry_written(b->store, carrying);
	return r;
}

/* write_lock held */
static int commit_rest(struct batch *b, bool durable, struct err *err)
{
	CLEANUP(carrying_done) struct carrying carrying = { 0 };
	struct store *s = b->store;
	int r = write_chunks(b, durable, &carrying, err);

	if (r < 0)
		return r;
	r = write_names(b, durable, &carrying, err);
	if (r < 0)
		return r;
	/* Even an empty batch may rely on commits that nobody has synced yet. */
	if (durable)
		r = store_sync(s, TABLE_META, err);
	if (r < 0)
		return r;
	b->committed = true;
	store_relieve_logs(s);
	return 0;
}

int batch_commit(struct batch *b, enum batch_durability durability, struct err *err)
{
	const bool durable = durability == BATCH_DURABLE;
	int r;

	assert(!b->committed);
	r = write_ahead(b, durable, err);
	if (r < 0)
		return r;
	lock_for_commit(b->store);
	r = commit_rest(b, durable, err);
	pthread_mutex_unlock(&b->store->write_lock);
	return r;
}
