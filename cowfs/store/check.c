/*
 * Two passes in one read transaction per database, begun while no writer is between
 * its two commits: first every row by itself, then every ref with all it reaches
 * (check-walk.c).  The second needs no content, only trees, recipes and the lengths of
 * chunks.
 */
#include "cowfs/store/check.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cowfs/store/check-i.h"
#include "cowfs/store/recipe.h"
#include "cowfs/store/tree-node.h"
#include "cowfs/store/xattrs.h"

#define PROGRESS_EVERY 1024 /* rows between two reports */

/* Rows whose lengths are kept: a damaged row number must not cost more than 256 MiB. */
#define LENGTHS_MAX ((int64_t)1 << 26)

/* --- rows ------------------------------------------------------------------------------- */

/* Is the object of the form its kind has? */
static int verify_form(enum object_kind kind, const struct buf *raw, struct err *why)
{
	struct recipe_node recipe;
	struct tree_node node;
	int r;

	switch (kind) {
	case OBJECT_CHUNK:
		return 0;
	case OBJECT_RECIPE:
		return recipe_decode(raw->data, raw->len, &recipe, why);
	case OBJECT_TREE:
		r = tree_node_open(raw->data, raw->len, &node, why);
		return r < 0 ? r : tree_node_verify(&node, why);
	case OBJECT_XATTRS:
		return xattrs_verify(raw->data, raw->len, why);
	}
	return err_set(why, -EBADMSG, "unknown kind %d", (int)kind);
}

/* A row of either table: seq, id, sum, data, kind. */
static int verify_row(struct check *c, struct db_query *q, enum object_kind *ret_kind,
		      struct object_id *ret_id, struct err *why)
{
	const int64_t stored_kind = query_int(q, 4);
	const enum object_kind kind = (enum object_kind)stored_kind;
	struct object_id actual;
	const void *id, *packed;
	size_t id_len, len;
	int r;

	*ret_id = (struct object_id){ 0 };
	*ret_kind = (enum object_kind)0;
	if (stored_kind < 1 || stored_kind > OBJECT_KINDS)
		return err_set(why, -EBADMSG, "unknown kind %lld", (long long)stored_kind);
	*ret_kind = kind;
	r = query_blob(q, 1, &id, &id_len, why);
	if (r < 0)
		return r;
	if (id_len != OBJECT_ID_SIZE)
		return err_set(why, -EBADMSG, "its id has %zu bytes", id_len);
	memcpy(ret_id->b, id, OBJECT_ID_SIZE);
	r = query_blob(q, 3, &packed, &len, why);
	if (r < 0)
		return r;
	if (object_row_sum(query_int(q, 0), kind, ret_id, packed, len) != (uint64_t)query_int(q, 2))
		return err_set(why, -EBADMSG, "the row does not match its checksum");
	r = object_unpack(c->rd->codec, packed, len, object_kind_max(kind), &c->rd->raw, why);
	if (r < 0)
		return r;
	c->report.bytes += c->rd->raw.len;
	actual = object_id_of(&c->store->key, kind, c->rd->raw.data, c->rd->raw.len);
	if (!object_id_equal(&actual, ret_id))
		return err_set(why, -EBADMSG, "its bytes do not match its id");
	return verify_form(kind, &c->rd->raw, why);
}

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

static int scan_table(struct check *c, enum table t, uint64_t total, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "SELECT seq, id, sum, data, kind FROM object ORDER BY seq",
		[TABLE_CHUNKS] = "SELECT seq, id, sum, data, 1 FROM chunk ORDER BY seq",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	size_t finding;
	int r;

	r = db_query(c->rd->db[t], sql[t], &q, err);
	if (r < 0)
		return r;
	while ((r = query_step(q, err)) > 0) {
		struct err why = { 0 };
		enum object_kind kind;
		struct object_id id;

		c->report.objects++;
		r = verify_row(c, q, &kind, &id, &why);
		if (r == -EBADMSG)
			r = check_add_object(c, kind, &id, why.msg, &finding, err);
		else if (r < 0)
			return err_set(err, r, "%s", why.msg);
		else if (t == TABLE_CHUNKS)
			r = note_length(c, query_int(q, 0), err);
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

	return check_add(c, "database", complaint, &finding, err);
}

/* What SQLite cannot read is a finding too; only trouble of our own ends the check. */
static int as_finding(struct check *c, int r, const char *what, const struct err *why,
		      struct err *err)
{
	size_t finding;

	if (r != -EBADMSG && r != -EIO)
		return r < 0 ? err_set(err, r, "%s", why->msg) : 0;
	return check_add(c, what, why->msg, &finding, err);
}

static int check_file(struct check *c, enum table t, uint64_t total, struct err *err)
{
	static const char *const name[TABLES] = { "meta.db", "chunks.db" };
	struct schema_identity identity;
	struct err why = { 0 };
	int r;

	r = db_verify(c->rd->db[t], on_complaint, c, &why);
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

static int on_ref(const struct ref *ref, const struct err *why, void *ctx, struct err *err)
{
	struct ref_visit *v = ctx;
	struct check *c = v->check;
	size_t finding;

	c->report.refs++;
	if (!ref)
		return check_add(c, "ref", why->msg, &finding, err);
	return check_walk_ref(v->walk, ref, err);
}

static int check_refs(struct check *c, struct err *err)
{
	CLEANUP(check_walk_free_p) struct check_walk *w = NULL;
	struct ref_visit visit = { .check = c };
	struct err why = { 0 };
	int r;

	r = check_walk_new(c, &w, err);
	if (r < 0)
		return r;
	visit.walk = w;
	r = ref_scan(c->rd->db[TABLE_META], on_ref, &visit, &why);
	return as_finding(c, r, "meta.db", &why, err);
}

/* Both databases as of one moment, chunks not older than the names for them. */
static int begin(struct check *c, struct err *err)
{
	struct store *s = c->store;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->marks)
		r = err_set(err, -EBUSY, "a gc of store '%s' is under way", s->path);
	else
		s->checks++;
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	c->begun = true;

	pthread_mutex_lock(&s->write_lock);
	r = db_begin_read(c->rd->db[TABLE_META], err);
	if (r >= 0)
		r = db_begin_read(c->rd->db[TABLE_CHUNKS], err);
	pthread_mutex_unlock(&s->write_lock);
	return r;
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
	int r;

	r = reader_take(s, &c.rd, err);
	if (r >= 0)
		r = begin(&c, err);
	if (r < 0)
		return r;
	/* Only for the progress: a table that cannot be counted is found damaged below. */
	for (int t = 0; t < TABLES; t++)
		IGNORE_RESULT(db_int(c.rd->db[t], count[t], &n[t], NULL), "see above");
	for (int t = 0; t < TABLES && r >= 0; t++)
		r = check_file(&c, (enum table)t, (uint64_t)(n[0] + n[1]), err);
	if (r >= 0)
		r = check_refs(&c, err);
	if (r < 0)
		return r;
	*ret = c.report;
	c.report = (struct check_report){ 0 };
	return 0;
}
