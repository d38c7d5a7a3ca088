/*
 * A batch is as safe from a repair as from a gc (invariant 5). All rows are marked but the ones to
 * remove, and the sweep counts as past all of them from the beginning: a row that a batch met
 * before is marked and stays; one that it meets now is refused to it, and it stores its bytes anew.
 * The write lock is held throughout, so no insert comes between.
 *
 * The bytes of a row are on the disk under another name before the transaction that removes it.
 */
#include "cowfs/store/upkeep/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/fdio.h"
#include "base/path.h"
#include "cowfs/store/upkeep/check-i.h"

/* What is to be done to a row. */
struct cure {
	int64_t seq;
	bool mend;   /* else it goes */
	int64_t sum; /* of one that is mended */
};

struct repair {
	struct store *store;
	const struct check_report *found;
	bool attached;
	struct marks marks; /* guarded by store->lock once attached */
	int dir;            /* of what is set aside; -1 until there is something */
	struct buf raw;
	struct buf cures[TABLES]; /* struct cure */
	struct repair_report report;
};

static struct row row_of(const struct check_row *r)
{
	return (struct row){ .table = r->is_chunk ? TABLE_CHUNKS : TABLE_META, .seq = r->seq };
}

/* --- beginning and ending --------------------------------------------------------------- */

static void repair_done(struct repair *p)
{
	struct store *s = p->store;

	if (p->attached) {
		pthread_mutex_lock(&s->lock);
		s->marks = NULL;
		/* A thread that found a row and has not relied on it yet looks again. */
		s->gcs_ended++;
		pthread_mutex_unlock(&s->lock);
	}
	marks_done(&p->marks);
	cleanup_close(&p->dir);
	buf_done(&p->raw);
	for (int t = 0; t < TABLES; t++)
		buf_done(&p->cures[t]);
}

/* Rows above the last that is damaged count as younger, so they need no bits. */
static int condemn(struct repair *p, struct err *err)
{
	int64_t limit[TABLES] = { 0 };
	int r;

	for (size_t i = 0; i < p->found->n_rows; i++) {
		const struct row row = row_of(&p->found->rows[i]);

		if (row.seq > limit[row.table])
			limit[row.table] = row.seq;
	}
	r = marks_init(&p->marks, limit, err);
	if (r < 0)
		return err_wrap(err, r, "store '%s'", p->store->path);
	marks_set_all(&p->marks);
	for (size_t i = 0; i < p->found->n_rows; i++)
		if (p->found->rows[i].seq > 0)
			marks_clear(&p->marks, row_of(&p->found->rows[i]));
	return 0;
}

/* write_lock held */
static int attach(struct repair *p, struct err *err)
{
	struct store *s = p->store;
	int r = condemn(p, err);

	if (r < 0)
		return r;
	LOCKED(&s->lock);
	if (s->marks || s->checks) {
		r = err_set(err, -EBUSY, "a %s of store '%s' is under way",
			    s->marks ? "gc" : "check", s->path);
	} else {
		batches_keep(s, &p->marks);
		for (int t = 0; t < TABLES; t++)
			p->marks.swept[t] = p->marks.limit[t];
		s->marks = &p->marks;
		p->attached = true;
	}
	return r;
}

/* --- what to do ------------------------------------------------------------------------- */

static int open_dir(struct repair *p, struct err *err)
{
	AUTO_FREE char *path = path_join(p->store->path, REPAIR_DIR);
	int r;

	if (p->dir >= 0)
		return 0;
	if (!path)
		return err_nomem(err);
	r = path_make_dirs(path, 0700, err);
	if (r < 0)
		return r;
	p->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return p->dir < 0 ? err_sys(err, "opening '%s'", path) : 0;
}

/* Named by its bytes too, so that a repair that is done again writes the same file again. */
static int set_aside(struct repair *p, int64_t seq, const struct checked_row *row, struct err *err)
{
	char hex[OBJECT_HEX_SIZE], name[96];
	int r;

	if (!row->packed)
		return 0;
	r = open_dir(p, err);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%s-%s-%016" PRIx64,
		 row->kind ? object_kind_name(row->kind) : "unknown", object_id_hex(&row->id, hex),
		 object_row_sum(seq, row->kind, &row->id, row->packed, row->len));
	r = fdio_replace_file(p->dir, name, row->packed, row->len, 0600, err);
	return r < 0 ? err_wrap(err, r, "setting aside '%s'", name) : 0;
}

/* lock taken: a batch may be asking. */
static bool is_relied_on(struct repair *p, struct row row)
{
	LOCKED(&p->store->lock);
	return row.seq > 0 && marks_has(&p->marks, row);
}

/* The query stands on the row. */
static int judge_found(struct repair *p, struct row row, struct db_query *q, struct err *err)
{
	struct cure cure = { .seq = row.seq };
	struct checked_row have;
	struct err why = { 0 };
	int r = check_row(&p->store->key, p->store->write_codec, q, &p->raw, &have, &why);

	if (r >= 0)
		return 0;
	if (r != -EBADMSG)
		return err_set(err, r, "%s", why.msg);
	cure.mend = have.right;
	if (cure.mend) {
		cure.sum =
		    (int64_t)object_row_sum(row.seq, have.kind, &have.id, have.packed, have.len);
	} else if (is_relied_on(p, row)) {
		p->report.left++;
		return 0;
	} else {
		r = set_aside(p, row.seq, &have, err);
		if (r < 0)
			return r;
	}
	if (buf_append(&p->cures[row.table], &cure, sizeof(cure)) < 0)
		return err_nomem(err);
	return 0;
}

static int judge(struct repair *p, struct row row, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "SELECT " CHECK_ROW_META " FROM object WHERE seq = ?1",
		[TABLE_CHUNKS] = "SELECT " CHECK_ROW_CHUNKS " FROM chunk WHERE seq = ?1",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	int r = db_query(p->store->writer[row.table], sql[row.table], &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, row.seq);
	r = query_step(q, err);
	return r <= 0 ? r : judge_found(p, row, q, err);
}

/* --- doing it --------------------------------------------------------------------------- */

struct curing {
	enum table table;
	const struct cure *list; /* borrowed */
	size_t n;
};

/* Inside a transaction. */
static int cure_each(struct store *s, void *ctx, struct err *err)
{
	static const char *const mend_sql[TABLES] = {
		[TABLE_META] = "UPDATE object SET sum = ?2 WHERE seq = ?1",
		[TABLE_CHUNKS] = "UPDATE chunk SET sum = ?2 WHERE seq = ?1",
	};
	static const char *const remove_sql[TABLES] = {
		[TABLE_META] = "DELETE FROM object WHERE seq = ?1",
		[TABLE_CHUNKS] = "DELETE FROM chunk WHERE seq = ?1",
	};
	CLEANUP(query_end_p) struct db_query *mend = NULL;
	CLEANUP(query_end_p) struct db_query *remove = NULL;
	const struct curing *c = ctx;
	int r = db_query(s->writer[c->table], mend_sql[c->table], &mend, err);

	if (r < 0)
		return r;
	r = db_query(s->writer[c->table], remove_sql[c->table], &remove, err);
	for (size_t i = 0; i < c->n && r >= 0; i++) {
		struct db_query *q = c->list[i].mend ? mend : remove;

		query_bind_int(q, 0, c->list[i].seq);
		if (c->list[i].mend)
			query_bind_int(q, 1, c->list[i].sum);
		r = query_run(q, err);
	}
	return r;
}

/* write_lock held */
static int cure_table(struct repair *p, enum table t, struct err *err)
{
	struct curing c = {
		.table = t,
		.list = (const struct cure *)p->cures[t].data,
		.n = p->cures[t].len / sizeof(struct cure),
	};
	const struct store_change change = {
		.table = t, .durable = true, .write = cure_each, .ctx = &c
	};
	int r = c.n > 0 ? store_write(p->store, &change, err) : 0;

	for (size_t i = 0; i < c.n && r >= 0; i++)
		*(c.list[i].mend ? &p->report.mended : &p->report.set_aside) += 1;
	return r;
}

/* write_lock held */
static int repair_rows(struct repair *p, struct err *err)
{
	int r = attach(p, err);

	for (size_t i = 0; i < p->found->n_rows && r >= 0; i++)
		r = judge(p, row_of(&p->found->rows[i]), err);
	for (int t = 0; t < TABLES && r >= 0; t++)
		r = cure_table(p, (enum table)t, err);
	return r < 0 ? r : 0;
}

int repair_store(struct store *s, const struct check_report *found, struct repair_report *ret,
		 struct err *err)
{
	struct repair p = { .store = s, .found = found, .dir = -1 };
	int r;

	if (s->mode == STORE_READ)
		return err_set(err, -EROFS, "store '%s' is open for reading only", s->path);
	if (found->torn)
		return err_set(err, -EBADMSG,
			       "store '%s': a database itself is damaged; nothing was repaired",
			       s->path);
	upkeep_begins(s);
	pthread_mutex_lock(&s->write_lock);
	r = repair_rows(&p, err);
	repair_done(&p);
	pthread_mutex_unlock(&s->write_lock);
	upkeep_begun(s);
	if (r < 0)
		return r;
	*ret = p.report;
	return r;
}
