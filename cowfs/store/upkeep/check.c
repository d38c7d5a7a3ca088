/*
 * Two passes in one read transaction per database, begun while no writer is between its two
 * commits: first every row by itself, then every ref with all it reaches (check-walk.c). The second
 * reads no content, only trees, recipes and the lengths of chunks.
 */
#include "cowfs/store/upkeep/check.h"

#include <errno.h>

#include "base/vec.h"
#include "cowfs/store/upkeep/check-i.h"

#define PROGRESS_EVERY 1024 /* rows between two reports */

/* Rows whose lengths are kept: a damaged row number must not cost more than 256 MiB. */
#define LENGTHS_MAX ((int64_t)1 << 26)

/* --- rows ------------------------------------------------------------------------------- */

/* The walk wants to know how long chunks are, and would have to unpack them again. */
static int note_length(struct check *c, int64_t seq, struct err *err)
{
	const uint32_t len = (uint32_t)c->rd->raw.len;
	const size_t at = (size_t)seq * sizeof(len);

	/* Rows come in rising order. */
	if (seq < 0 || seq >= LENGTHS_MAX || at < c->chunk_len.len)
		return 0;
	if (buf_append_zero(&c->chunk_len, at - c->chunk_len.len) < 0 ||
	    buf_append(&c->chunk_len, &len, sizeof(len)) < 0)
		return err_nomem(err);
	return 0;
}

/* Bad for each object that names it, and something for repair_store(). */
static int add_row(struct check *c, enum table t, int64_t seq, const struct checked_row *row,
		   const char *why, struct err *err)
{
	struct check_report *rep = &c->report;
	size_t finding;

	if (!VEC_ONE_MORE(rep->rows, rep->n_rows))
		return err_nomem(err);
	rep->rows[rep->n_rows++] = (struct check_row){ .is_chunk = t == TABLE_CHUNKS, .seq = seq };
	return check_add_object(c, row->kind, &row->id, why, &finding, err);
}

static int scan_table(struct check *c, enum table t, uint64_t total, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "SELECT " CHECK_ROW_META " FROM object ORDER BY seq",
		[TABLE_CHUNKS] = "SELECT " CHECK_ROW_CHUNKS " FROM chunk ORDER BY seq",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(c->rd->db[t], sql[t], &q, err);

	if (r < 0)
		return r;
	while ((r = query_step(q, err)) > 0) {
		const int64_t seq = query_int(q, 0);
		struct err why = { 0 };
		struct checked_row row;

		c->report.objects++;
		r = check_row(&c->store->key, c->rd->codec, q, &c->rd->raw, &row, &why);
		if (row.unpacked)
			c->report.bytes += c->rd->raw.len;
		if (r == -EBADMSG)
			r = add_row(c, t, seq, &row, why.msg, err);
		else if (r < 0)
			return err_set(err, r, "%s", why.msg);
		else if (t == TABLE_CHUNKS)
			r = note_length(c, seq, err);
		if (r < 0)
			return r;
		if (c->progress && c->report.objects % PROGRESS_EVERY == 0)
			c->progress(c->report.objects, total, c->progress_ctx);
	}
	return r;
}

/* --- files and refs --------------------------------------------------------------------- */

static int on_complaint(const char *complaint, void *ctx, struct err *err)
{
	struct check *c = ctx;
	size_t finding;

	c->report.torn = true;
	return check_add(c, "database", complaint, &finding, err);
}

/* What SQLite cannot read is a finding too; only trouble of our own ends the check. */
static int as_finding(struct check *c, int r, const char *what, const struct err *why,
		      struct err *err)
{
	size_t finding;

	if (r != -EBADMSG && r != -EIO)
		return r < 0 ? err_set(err, r, "%s", why->msg) : 0;
	c->report.torn = true;
	return check_add(c, what, why->msg, &finding, err);
}

static int check_file(struct check *c, enum table t, uint64_t total, struct err *err)
{
	static const char *const name[TABLES] = { "meta.db", "chunks.db" };
	struct schema_identity identity;
	struct err why = { 0 };
	int r = db_verify(c->rd->db[t], on_complaint, c, &why);

	r = as_finding(c, r, name[t], &why, err);
	if (r < 0)
		return r;
	r = schema_identity(c->rd->db[t], &identity, &why);
	r = as_finding(c, r, name[t], &why, err);
	if (r < 0)
		return r;
	r = scan_table(c, t, total, &why);
	return as_finding(c, r, name[t], &why, err);
}

struct ref_visit {
	struct check *check;
	struct check_walk *walk;
};

static int on_ref(const struct ref *ref, const struct ref_damage *damage, void *ctx,
		  struct err *err)
{
	struct ref_visit *v = ctx;
	struct check *c = v->check;
	size_t finding;

	c->report.refs++;
	if (!ref)
		return check_add(c, "ref", damage->why.msg, &finding, err);
	return check_walk_ref(v->walk, ref, err);
}

static int check_refs(struct check *c, struct err *err)
{
	CLEANUP(check_walk_free_p) struct check_walk *w = NULL;
	struct ref_visit visit = { .check = c };
	struct err why = { 0 };
	int r = check_walk_new(c, &w, err);

	if (r < 0)
		return r;
	visit.walk = w;
	r = ref_scan(c->rd->db[TABLE_META], 0, on_ref, &visit, &why);
	return as_finding(c, r, "meta.db", &why, err);
}

/* Both databases as of one moment, chunks not older than the names for them. */
static int begin(struct check *c, struct err *err)
{
	struct store *s = c->store;
	int r = 0;

	upkeep_begins(s);
	pthread_mutex_lock(&s->lock);
	if (s->marks)
		r = err_set(err, -EBUSY, "a gc of store '%s' is under way", s->path);
	else
		s->checks++;
	pthread_mutex_unlock(&s->lock);
	upkeep_begun(s);
	if (r < 0)
		return r;
	c->begun = true;

	LOCKED(&s->write_lock);
	r = db_begin_read(c->rd->db[TABLE_META], err);
	return r < 0 ? r : db_begin_read(c->rd->db[TABLE_CHUNKS], err);
}

static void check_done(struct check *c)
{
	struct bad_object *bad;
	size_t pos = 0;

	for (int t = 0; t < TABLES && c->rd; t++)
		db_rollback(c->rd->db[t]);
	reader_give(c->rd);
	if (c->begun) {
		pthread_mutex_lock(&c->store->lock);
		c->store->checks--;
		pthread_mutex_unlock(&c->store->lock);
	}
	while ((bad = map_next(&c->bad, &pos)))
		free(bad);
	map_done(&c->bad);
	check_said_done(c);
	buf_done(&c->chunk_len);
	check_report_done(&c->report);
}

int check_store(struct store *s, check_progress_fn progress, void *ctx, struct check_report *ret,
		struct err *err)
{
	CLEANUP(check_done) struct check c = {
		.store = s,
		.bad = MAP_INIT(object_ref_hash, object_ref_equal),
		.said = MAP_INIT(map_hash_str, map_equal_str),
		.progress = progress,
		.progress_ctx = ctx,
	};
	static const char *const count[TABLES] = { "SELECT count(*) FROM object",
						   "SELECT count(*) FROM chunk" };
	int64_t n[TABLES] = { 0 };
	int r = reader_take(s, &c.rd, err);

	if (r < 0)
		return r;
	r = begin(&c, err);
	if (r < 0)
		return r;
	/* Only for the progress: a table that cannot be counted is found damaged below. */
	for (int t = 0; t < TABLES; t++)
		IGNORE_RESULT(db_int(c.rd->db[t], count[t], &n[t], NULL), "see above");
	for (int t = 0; t < TABLES && r >= 0; t++)
		r = check_file(&c, (enum table)t, (uint64_t)(n[0] + n[1]), err);
	if (r < 0)
		return r;
	r = check_refs(&c, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(c.report);
	return 0;
}
