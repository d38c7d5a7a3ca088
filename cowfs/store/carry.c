#include "cowfs/store/carry-i.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "cowfs/store/batch-i.h"

static const char each_sql[] = "SELECT name, root, value, sum FROM ref WHERE kind = ?1";
static const char one_sql[] =
    "SELECT name, root, value, sum FROM ref WHERE kind = ?1 AND name = ?2";
static const char drop_sql[] = "DELETE FROM ref WHERE kind = ?1 AND name = ?2";
static const char drop_all_sql[] = "DELETE FROM ref WHERE kind = ?1";

void carrying_done(struct carrying *c)
{
	if (!c->list)
		return;
	pthread_mutex_lock(&c->store->lock);
	for (size_t i = 0; i < c->n; i++)
		pending_object_unref(c->store, c->list[i]);
	pthread_mutex_unlock(&c->store->lock);
	free(c->list);
}

bool carry_may(struct store *s, size_t n, uint64_t bytes)
{
	if (s->synced[TABLE_CHUNKS] >= s->commits[TABLE_CHUNKS])
		carry_synced(s);
	/* Something else has to be synced first, or where room is short all is written but once. */
	if (s->uncarried || bytes > CARRY_COMMIT_MAX || s->carried_bytes + bytes > CARRY_MAX ||
	    store_room(s) < STORE_ROOM_PLENTY)
		return false;
	for (size_t have = s->n_carried; have < s->n_carried + n; have++)
		if (!VEC_ROOM(s->carried, have, s->cap_carried))
			return false;
	return true;
}

static int drop(struct db *meta, const struct object_id *id, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(meta, drop_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_CARRIED);
	query_bind_blob(q, 1, id->b, sizeof(id->b));
	return query_run(q, err);
}

int carry_write(struct store *s, const struct carrying *c, struct err *err)
{
	struct db *meta = s->writer[TABLE_META];
	int r = 0;

	for (size_t i = 0; i < s->n_needless && r >= 0; i++)
		r = drop(meta, &s->carried[i], err);
	for (size_t i = 0; i < c->n && r >= 0; i++) {
		const struct pending_object *p = c->list[i];
		const struct ref row = {
			.kind = REF_CARRIED,
			.name = (const char *)p->what.id.b,
			.name_len = sizeof(p->what.id.b),
			.value = p->packed,
			.value_len = p->len,
		};

		r = ref_row_write(meta, &row, REF_REPLACE, err);
	}
	return r;
}

void carry_written(struct store *s, const struct carrying *c)
{
	if (s->n_needless > 0) {
		s->n_carried -= s->n_needless;
		memmove(s->carried, s->carried + s->n_needless, s->n_carried * sizeof(*s->carried));
		s->n_needless = 0;
		s->carried_bytes = 0; /* what is needless is all that was carried then */
	}
	for (size_t i = 0; i < c->n; i++)
		s->carried[s->n_carried++] = c->list[i]->what.id;
	s->carried_bytes += c->bytes;
	if (c->n > 0)
		s->uncarried = false;
}

/* --- after a crash ---------------------------------------------------------------------- */

static int put_back(struct store *s, const struct ref *row, struct err *err)
{
	static const char sql[] = "INSERT INTO chunk(seq, id, sum, data) VALUES(?1, ?2, ?3, ?4)"
				  " ON CONFLICT(id) DO NOTHING";
	CLEANUP(query_end_p) struct db_query *q = NULL;
	const int64_t seq = s->next_seq[TABLE_CHUNKS];
	struct object_id id;
	int r;

	if (row->name_len != sizeof(id.b))
		return err_set(err, -EBADMSG, "a carried chunk has no id");
	memcpy(id.b, row->name, sizeof(id.b));
	r = db_query(s->writer[TABLE_CHUNKS], sql, &q, err);
	if (r < 0)
		return r;
	query_bind_int(q, 0, seq);
	query_bind_blob(q, 1, id.b, sizeof(id.b));
	query_bind_int(q, 2,
		       (int64_t)object_row_sum(seq, OBJECT_CHUNK, &id, row->value, row->value_len));
	query_bind_blob(q, 3, row->value, row->value_len);
	r = query_run(q, err);
	if (r < 0)
		return r;
	if (db_changes(s->writer[TABLE_CHUNKS]) > 0)
		s->next_seq[TABLE_CHUNKS]++;
	return r;
}

/* Inside a transaction of chunks.db. */
static int put_back_all(struct store *s, void *ctx, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct err why = { 0 };
	struct ref row;
	int r = db_query(s->writer[TABLE_META], each_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_CARRIED);
	while ((r = query_step(q, err)) > 0) {
		r = ref_row_read(q, REF_CARRIED, &row, &why);
		r = r < 0 ? r : put_back(s, &row, &why);
		if (r < 0 && r != -EBADMSG)
			return err_set(err, r, "%s", why.msg);
		/* If chunks.db lacks it too, reading it reports the damage. */
		if (r < 0)
			log_warn("%s, continuing", why.msg);
	}
	return r;
}

/* Inside a transaction of meta.db. */
static int drop_all(struct store *s, void *ctx, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(s->writer[TABLE_META], drop_all_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_CARRIED);
	return query_run(q, err);
}

static int find_any(struct store *s, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(s->writer[TABLE_META], each_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_CARRIED);
	return query_step(q, err);
}

int carry_recover(struct store *s, struct err *err)
{
	const struct store_change back = { .table = TABLE_CHUNKS,
					   .durable = true,
					   .write = put_back_all };
	const struct store_change gone = { .table = TABLE_META, .write = drop_all };
	int r = find_any(s, err);

	if (r <= 0)
		return r;
	r = store_write(s, &back, err);
	if (r < 0)
		return r;
	/* Where nothing was lacking there was nothing to wait for; the log was moved, and synced. */
	return store_write(s, &gone, err);
}

void carry_end(struct store *s)
{
	const struct store_change gone = { .table = TABLE_META, .write = drop_all };
	struct err err = { 0 };

	if (s->n_carried == 0)
		return;
	if (store_sync(s, TABLE_CHUNKS, &err) < 0 || store_write(s, &gone, &err) < 0)
		log_debug("%s, continuing", err.msg);
}

int carry_fetch(struct reader *rd, const struct object_id *id, struct buf *out, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct ref row;
	int r = db_query(rd->db[TABLE_META], one_sql, &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, REF_CARRIED);
	query_bind_blob(q, 1, id->b, sizeof(id->b));
	r = query_step(q, err);
	if (r <= 0)
		return r;
	r = ref_row_read(q, REF_CARRIED, &row, err);
	if (r < 0)
		return r;
	r = object_unpack(rd->codec, row.value, row.value_len, CHUNK_SIZE_MAX, out, err);
	return r < 0 ? r : 1;
}
