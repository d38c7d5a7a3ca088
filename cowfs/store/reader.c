#include "cowfs/store/reader-i.h"

#include <errno.h>

#include "base/path.h"
#include "cowfs/store/schema.h"
#include "cowfs/store/store-i.h"

static void reader_free(struct reader *rd)
{
	if (!rd)
		return;
	for (int t = 0; t < TABLES; t++)
		db_close(rd->db[t]);
	codec_free(rd->codec);
	buf_done(&rd->raw);
	buf_done(&rd->packed);
	free(rd);
}
DEFINE_CLEANUP(struct reader *, reader_free)

void store_trim(struct store *s)
{
	struct reader *rd, *next;

	pthread_mutex_lock(&s->pool_lock);
	rd = TAKE_PTR(s->idle);
	pthread_mutex_unlock(&s->pool_lock);
	for (; rd; rd = next) {
		next = rd->next;
		reader_free(rd);
	}
}

static int open_missing(struct reader *rd, enum table t, struct err *err)
{
	AUTO_FREE char *path = NULL;

	if (rd->db[t])
		return 0;
	path = path_join(rd->store->path, schema_file_name((enum schema_file)t));
	return path ? db_open(path, DB_READ, &rd->db[t], err) : err_nomem(err);
}

/* Takes the connections of `db` that there are. */
static int reader_new(struct store *s, struct db *db[TABLES], struct reader **ret, struct err *err)
{
	CLEANUP(reader_free_p) struct reader *rd = calloc(1, sizeof(*rd));
	int r;

	if (!rd)
		return err_nomem(err);
	rd->store = s;
	for (int t = 0; t < TABLES; t++)
		rd->db[t] = TAKE_PTR(db[t]);
	r = codec_new(&rd->codec, err);
	for (int t = 0; t < TABLES && r >= 0; t++)
		r = open_missing(rd, (enum table)t, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(rd);
	return 0;
}

int reader_take(struct store *s, struct reader **ret, struct err *err)
{
	struct db *none[TABLES] = { 0 };
	struct reader *rd;

	pthread_mutex_lock(&s->pool_lock);
	rd = s->idle;
	if (rd)
		s->idle = rd->next;
	pthread_mutex_unlock(&s->pool_lock);
	if (!rd)
		return reader_new(s, none, ret, err);
	*ret = rd;
	return 0;
}

int reader_add(struct store *s, struct db *db[TABLES], struct err *err)
{
	struct reader *rd = NULL;
	int r = reader_new(s, db, &rd, err);

	reader_give(rd);
	return r;
}

void reader_give(struct reader *rd)
{
	struct store *s;

	if (!rd)
		return;
	s = rd->store;
	LOCKED(&s->pool_lock);
	rd->next = s->idle;
	s->idle = rd;
}

static const char find_object_sql[] = "SELECT seq FROM object WHERE id = ?1 AND kind = ?2";
static const char find_chunk_sql[] = "SELECT seq FROM chunk WHERE id = ?1";
static const char size_object_sql[] =
    "SELECT seq, length(data) FROM object WHERE id = ?1 AND kind = ?2";
static const char size_chunk_sql[] = "SELECT seq, length(data) FROM chunk WHERE id = ?1";
static const char get_object_sql[] = "SELECT seq, data FROM object WHERE id = ?1 AND kind = ?2";
static const char get_chunk_sql[] = "SELECT seq, data FROM chunk WHERE id = ?1";

int object_damaged(struct err *err, enum object_kind kind, const struct object_id *id,
		   const char *why)
{
	char hex[OBJECT_HEX_SIZE];

	return err_set(err, -EBADMSG, "%s %s is damaged: %s", object_kind_name(kind),
		       object_id_hex(id, hex), why);
}

/* 1 if a row was found, with the query standing on it. */
static int seek_object(struct db *db, const char *object_sql, const char *chunk_sql,
		       enum object_kind kind, const struct object_id *id, struct db_query **q,
		       struct row *ret, struct err *err)
{
	int r = db_query(db, kind == OBJECT_CHUNK ? chunk_sql : object_sql, q, err);

	if (r < 0)
		return r;
	query_bind_blob(*q, 0, id->b, sizeof(id->b));
	if (kind != OBJECT_CHUNK)
		query_bind_int(*q, 1, kind);
	r = query_step(*q, err);
	if (r <= 0)
		return r;
	*ret = (struct row){ .table = table_of(kind), .seq = query_int(*q, 0) };
	/* Rows are numbered from 1, and bitmaps are indexed by it. */
	if (ret->seq < 1)
		return object_damaged(err, kind, id, "its row has no number");
	return 1;
}

int reader_find(struct reader *rd, enum object_kind kind, const struct object_id *id,
		struct row *ret, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;

	return seek_object(rd->db[table_of(kind)], find_object_sql, find_chunk_sql, kind, id, &q,
			   ret, err);
}

int reader_packed_size(struct reader *rd, enum object_kind kind, const struct object_id *id,
		       uint64_t *ret, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct row unused;
	int r = seek_object(rd->db[table_of(kind)], size_object_sql, size_chunk_sql, kind, id, &q,
			    &unused, err);

	if (r > 0)
		*ret = (uint64_t)query_int(q, 1);
	return r;
}

int object_fetch(struct db *db, struct codec *codec, enum object_kind kind,
		 const struct object_id *id, struct buf *out, struct row *ret_row, struct err *err)
{
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct err why = { 0 };
	const void *packed;
	size_t len;
	int r = seek_object(db, get_object_sql, get_chunk_sql, kind, id, &q, ret_row, err);

	if (r <= 0)
		return r;
	r = query_blob(q, 1, &packed, &len, &why);
	r = r < 0 ? r : object_unpack(codec, packed, len, object_kind_max(kind), out, &why);
	if (r == -EBADMSG)
		return object_damaged(err, kind, id, why.msg);
	if (r < 0)
		return err_set(err, r, "%s", why.msg);
	return 1;
}

int object_compare(const struct object_key *key, const struct object_ref *what,
		   const struct buf *stored, const void *data, size_t len, struct err *err)
{
	struct object_id actual;
	char hex[OBJECT_HEX_SIZE];

	if (stored->len == len && (len == 0 || memcmp(stored->data, data, len) == 0))
		return 0;
	actual = object_id_of(key, what->kind, stored->data, stored->len);
	if (!object_id_equal(&actual, &what->id))
		return object_damaged(err, what->kind, &what->id, "its bytes do not match its id");
	return err_set(err, -EEXIST,
		       "%s %s exists with other bytes; two contents cannot share an id",
		       object_kind_name(what->kind), object_id_hex(&what->id, hex));
}
