/*
 * Mark and sweep by row number. A row's mark is a bit; rows are numbered upwards and no number is
 * used twice while a process lives, so objects stored after gc_begin() lie above `limit` and are
 * left alone.
 *
 * A batch that runs beside it is safe (invariant 5): every row that a batch meets is marked, under
 * store->lock, before the batch may rely on it; a row that the sweep has passed is refused instead,
 * and the batch stores its bytes anew. By the rule of batch.h the objects it names are rows it met,
 * or reachable from refs that were there when marking began.
 *
 * Deletions in chunks.db may reach the disk before meta.db's last commits do, so meta.db is synced
 * before the first chunk goes: else a power cut could bring back a ref whose chunks are gone.
 */
#include "cowfs/store/upkeep/gc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/store/behind.h"
#include "cowfs/store/ref-row-i.h"
#include "cowfs/store/store-i.h"

/* Snapshots share most of what they name: so many of the last are not looked for in the database again. */
#define LATELY 65536

struct gc {
	struct store *store;
	enum gc_phase phase;
	struct gc_progress progress;
	bool aside;            /* as gc_begin_aside() has it */
	bool trial;            /* nothing goes, and no batch is refused a row */
	gc_without_fn without; /* of a trial: refs that count as gone; NULL: none */
	void *without_ctx;
	bool counted;       /* in store->gcs_done */
	int failed;         /* what a step returned: a mark may be missing, so none follows */
	enum table table;   /* being swept */
	int64_t at[TABLES]; /* rows up to here are swept */
	struct marks marks; /* guarded by store->lock */
	struct marks seen;  /* rows this gc came by: it looks at each only once */
	int64_t free_pages; /* left by the last step that shrank the files */
	struct buf todo;    /* struct object_ref: to be marked and looked into */
	struct object_ref *lately; /* owned: what was put into todo, by its hash */
	struct buf node;
};

/* --- beginning and ending --------------------------------------------------------------- */

void upkeep_begins(struct store *s)
{
	LOCKED(&s->lock);
	s->upkeep_wanted++;
	while (s->marks && s->aside)
		pthread_cond_wait(&s->aside_gone, &s->lock);
}

void upkeep_begun(struct store *s)
{
	LOCKED(&s->lock);
	s->upkeep_wanted--;
}

static bool is_unwanted(struct gc *g)
{
	LOCKED(&g->store->lock);
	return g->aside && g->store->upkeep_wanted > 0;
}

static int add_target(struct gc *g, enum object_kind kind, const struct object_id *id,
		      struct err *err)
{
	struct object_ref t = { .kind = kind, .id = *id };
	struct object_ref *last = &g->lately[object_ref_hash(&t) % LATELY];

	if (object_ref_equal(last, &t))
		return 0;
	*last = t;
	return buf_append(&g->todo, &t, sizeof(t)) < 0 ? err_nomem(err) : 0;
}

static int stopped(struct err *err, int code)
{
	return err_wrap(err, code, "gc stopped before removing anything");
}

/*
 * A ref that cannot be read hides what it reaches, just as a tree does.  An audit entry reaches
 * nothing, so a damaged one with an empty root hides nothing: `check` and `audit verify` name it.
 */
static int add_root(const struct ref *ref, const struct ref_damage *damage, void *ctx,
		    struct err *err)
{
	struct gc *g = ctx;

	if (!ref && damage->kind == REF_AUDIT && damage->rootless)
		return 0;
	if (!ref)
		return err_set(err, -EBADMSG, "%s", damage->why.msg);
	if (object_id_is_zero(&ref->root) || (g->without && g->without(ref, g->without_ctx)))
		return 0;
	return add_target(g, OBJECT_TREE, &ref->root, err);
}

static int add_pin(const struct object_ref *what, void *ctx, struct err *err)
{
	return add_target(ctx, what->kind, &what->id, err);
}

static int attach(struct store *s, struct gc *g, struct err *err)
{
	int64_t limit[TABLES];
	int r;

	for (int t = 0; t < TABLES; t++)
		limit[t] = s->next_seq[t] - 1;
	r = marks_init(&g->marks, limit, err);
	r = r < 0 ? r : marks_init(&g->seen, limit, err);
	if (r < 0)
		return err_wrap(err, r, "store '%s'", s->path);

	LOCKED(&s->lock);
	if (g->aside && s->upkeep_wanted > 0) {
		r = err_set(err, -EBUSY, "somebody else looks after store '%s'", s->path);
	} else if (s->marks || s->checks) {
		r = err_set(err, -EBUSY, "a %s of store '%s' is under way",
			    s->marks ? "gc" : "check", s->path);
	} else {
		s->marks = &g->marks;
		s->aside = g->aside;
		batches_keep(s, &g->marks);
	}
	return r;
}

/* write_lock held */
static int add_roots(struct store *s, struct gc *g, struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	int r = reader_take(s, &rd, err);

	if (r < 0)
		return stopped(err, r);
	r = ref_scan(rd->db[TABLE_META], 0, add_root, g, err);
	if (r < 0)
		return stopped(err, r);
	LOCKED(&s->lock);
	r = pins_each(s, add_pin, g, err);
	return r < 0 ? stopped(err, r) : 0;
}

static int begin(struct store *s, const struct gc *how, struct gc **ret, struct err *err)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	int r;

	if (s->mode == STORE_READ)
		return err_set(err, -EROFS, "store '%s' is open for reading only", s->path);
	g = malloc(sizeof(*g));
	if (!g)
		return err_nomem(err);
	*g = *how;
	g->store = s;
	g->lately = calloc(LATELY, sizeof(*g->lately));
	if (!g->lately)
		return err_nomem(err);

	if (!g->aside)
		upkeep_begins(s);
	/* No commit may fall between the lists of batches, refs and pins. */
	pthread_mutex_lock(&s->write_lock);
	r = attach(s, g, err);
	r = r < 0 ? r : add_roots(s, g, err);
	pthread_mutex_unlock(&s->write_lock);
	if (!g->aside)
		upkeep_begun(s);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(g);
	return 0;
}

int gc_begin(struct store *s, struct gc **ret, struct err *err)
{
	return begin(s, &(struct gc){ 0 }, ret, err);
}

int gc_begin_aside(struct store *s, struct gc **ret, struct err *err)
{
	return begin(s, &(struct gc){ .aside = true }, ret, err);
}

int gc_begin_trial(struct store *s, gc_without_fn without, void *ctx, struct gc **ret,
		   struct err *err)
{
	const struct gc how = { .trial = true, .without = without, .without_ctx = ctx };

	return begin(s, &how, ret, err);
}

void gc_end(struct gc *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->store->lock);
	if (g->store->marks == &g->marks) {
		g->store->marks = NULL;
		g->store->aside = false;
		g->store->gcs_ended++;
		pthread_cond_broadcast(&g->store->aside_gone);
	}
	pthread_mutex_unlock(&g->store->lock);
	marks_done(&g->marks);
	marks_done(&g->seen);
	buf_done(&g->todo);
	buf_done(&g->node);
	free(g->lately);
	free(g);
}

/* --- marking ---------------------------------------------------------------------------- */

/* 1 if there is something behind the object that this gc has not looked at. */
static int mark_row(struct gc *g, struct reader *rd, const struct object_ref *t, struct err *err)
{
	bool is_leaf = t->kind == OBJECT_CHUNK || t->kind == OBJECT_XATTRS;
	struct row row;
	int r = reader_find(rd, t->kind, &t->id, &row, err);

	if (r < 0)
		return r;
	/* Missing, but nothing lies behind it: a matter for check.  Else store_require() says so. */
	if (r == 0)
		return !is_leaf;
	if (row.seq > g->seen.limit[row.table] || marks_set(&g->seen, row))
		return 0;
	pthread_mutex_lock(&g->store->lock);
	marks_set(&g->marks, row);
	pthread_mutex_unlock(&g->store->lock);
	g->progress.marked++;
	return !is_leaf;
}

static int add_behind(enum object_kind kind, const struct object_id *id, void *ctx, struct err *err)
{
	return add_target(ctx, kind, id, err);
}

/* What a tree or recipe names. */
static int mark_behind(struct gc *g, const struct object_ref *t, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];
	int r = store_require(g->store, t->kind, &t->id, &g->node, err);

	if (r < 0)
		return r;
	r = behind_each(t->kind, g->node.data, g->node.len, add_behind, g, err);
	if (r < 0)
		return err_wrap(err, r, "%s %s", object_kind_name(t->kind),
				object_id_hex(&t->id, hex));
	return 0;
}

static int mark_one(struct gc *g, struct reader *rd, struct err *err)
{
	struct object_ref t;
	int r;

	g->todo.len -= sizeof(t);
	memcpy(&t, g->todo.data + g->todo.len, sizeof(t));
	r = mark_row(g, rd, &t, err);
	return r > 0 ? mark_behind(g, &t, err) : r;
}

static int step_mark(struct gc *g, unsigned budget, struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	int r = reader_take(g->store, &rd, err);

	while (r >= 0 && budget-- > 0 && g->todo.len > 0)
		r = mark_one(g, rd, err);
	if (r < 0 || g->todo.len > 0)
		return r;

	if (!g->trial) {
		pthread_mutex_lock(&g->store->write_lock);
		r = store_settle_names(g->store, err); /* invariant 4 */
		pthread_mutex_unlock(&g->store->write_lock);
	}
	if (r < 0)
		return r;
	g->phase = GC_SWEEP;
	return r;
}

/* --- sweeping --------------------------------------------------------------------------- */

/* Rows to remove, found among the next `budget` ones. */
struct victims {
	struct buf seqs; /* int64_t */
	uint64_t bytes;
	bool end;
};

/* write_lock held */
static int find_victims(struct gc *g, unsigned budget, struct victims *v, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "SELECT seq, length(data) FROM object WHERE seq > ?1 AND seq <= ?2"
			       " ORDER BY seq LIMIT ?3",
		[TABLE_CHUNKS] = "SELECT seq, length(data) FROM chunk WHERE seq > ?1 AND seq <= ?2"
				 " ORDER BY seq LIMIT ?3",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	struct store *s = g->store;
	unsigned n = 0;
	int r = db_query(s->writer[g->table], sql[g->table], &q, err);

	if (r < 0)
		return r;
	query_bind_int(q, 0, g->at[g->table]);
	query_bind_int(q, 1, g->marks.limit[g->table]);
	query_bind_int(q, 2, budget);
	while ((r = query_step(q, err)) > 0) {
		int64_t seq = query_int(q, 0);
		bool stays;

		n++;
		/* Decided once and for all: from here on a batch that meets the row is refused it. */
		pthread_mutex_lock(&s->lock);
		stays = marks_has(&g->marks, (struct row){ .table = g->table, .seq = seq });
		if (!g->trial)
			g->marks.swept[g->table] = seq;
		pthread_mutex_unlock(&s->lock);
		g->at[g->table] = seq;
		if (stays)
			continue;
		if (buf_append(&v->seqs, &seq, sizeof(seq)) < 0)
			return err_nomem(err);
		v->bytes += (uint64_t)query_int(q, 1);
	}
	v->end = n < budget;
	return r;
}

struct deletion {
	enum table table;
	const int64_t *seqs; /* borrowed */
	size_t n;
};

static int delete_each(struct store *s, void *ctx, struct err *err)
{
	static const char *const sql[TABLES] = {
		[TABLE_META] = "DELETE FROM object WHERE seq = ?1",
		[TABLE_CHUNKS] = "DELETE FROM chunk WHERE seq = ?1",
	};
	CLEANUP(query_end_p) struct db_query *q = NULL;
	const struct deletion *d = ctx;
	int r = db_query(s->writer[d->table], sql[d->table], &q, err);

	for (size_t i = 0; i < d->n && r >= 0; i++) {
		query_bind_int(q, 0, d->seqs[i]);
		r = query_run(q, err);
	}
	return r;
}

/* In one transaction, or in as many as a full disk makes of it.  write_lock held. */
static int delete_rows(struct store *s, enum table t, const struct buf *seqs, struct err *err)
{
	const size_t n = seqs->len / sizeof(int64_t);
	struct deletion d = { .table = t, .n = n };
	const struct store_change change = { .table = t, .write = delete_each, .ctx = &d };
	int r = 0;

	for (size_t done = 0; done < n && r >= 0; done += d.n) {
		d.seqs = (const int64_t *)seqs->data + done;
		d.n = d.n < n - done ? d.n : n - done;
		while (store_is_full(r = store_write(s, &change, err)) && d.n > 1)
			d.n /= 2;
	}
	return r;
}

/* write_lock held */
static int sweep_some(struct gc *g, unsigned budget, struct err *err)
{
	CLEANUP(buf_done) struct buf seqs = BUF_INIT;
	struct victims v = { 0 };
	int r = find_victims(g, budget, &v, err);

	buf_swap(&seqs, &v.seqs);
	if (r < 0)
		return r;
	if (seqs.len > 0 && !g->trial)
		r = delete_rows(g->store, g->table, &seqs, err);
	if (r < 0)
		return r;
	g->progress.swept += seqs.len / sizeof(int64_t);
	g->progress.swept_bytes += v.bytes;
	if (!g->trial)
		store_relieve_logs(g->store);
	if (v.end && g->table == TABLE_META)
		g->table = TABLE_CHUNKS;
	else if (v.end)
		g->phase = g->trial ? GC_DONE : GC_SHRINK;
	return 0;
}

struct shrinking {
	enum table table;
	unsigned pages;
};

static int give_pages_back(struct store *s, void *ctx, struct err *err)
{
	const struct shrinking *what = ctx;
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%u)", what->pages);
	return db_exec(s->writer[what->table], sql, err);
}

/* Moving pages takes room too; without any, the free ones stay to be used again.  write_lock held. */
static int shrink_file(struct gc *g, enum table t, unsigned budget, struct err *err)
{
	struct shrinking what = { .table = t, .pages = budget };
	const struct store_change change = { .table = t, .write = give_pages_back, .ctx = &what };
	int r;

	while (store_is_full(r = store_write(g->store, &change, err)) && what.pages > 1)
		what.pages /= 2;
	return store_is_full(r) ? 0 : r;
}

/* Give free pages at the end of the files back.  write_lock held. */
static int shrink_files(struct gc *g, unsigned budget, int64_t *left, struct err *err)
{
	int64_t more;
	int r;

	for (int t = 0; t < TABLES; t++) {
		r = shrink_file(g, t, budget, err);
		if (r < 0)
			return r;
		r = db_int(g->store->writer[t], "PRAGMA freelist_count", &more, err);
		if (r < 0)
			return r;
		*left += more;
	}
	return 0;
}

static int shrink_some(struct gc *g, unsigned budget, struct err *err)
{
	int64_t left = 0;
	int r = shrink_files(g, budget, &left, err);

	store_relieve_logs(g->store);
	if (r < 0)
		return r;
	/* A file may not be able to give more back. */
	if (left == 0 || left == g->free_pages)
		g->phase = GC_DONE;
	g->free_pages = left;
	return r;
}

static void note_done(struct gc *g)
{
	if (g->trial || g->counted)
		return;
	g->counted = true;
	LOCKED(&g->store->lock);
	g->store->gcs_done++;
}

uint64_t gc_count(struct store *s)
{
	LOCKED(&s->lock);
	return s->gcs_done;
}

int gc_step(struct gc *g, unsigned budget, struct gc_progress *ret, struct err *err)
{
	struct store *s = g->store;
	int r = 0;

	assert(budget > 0);
	if (g->failed < 0)
		return err_set(err, g->failed, "an earlier step of the gc failed");
	if (is_unwanted(g))
		return err_set(err, -ECANCELED, "somebody else looks after the store");
	switch (g->phase) {
	case GC_MARK:
		r = step_mark(g, budget, err);
		if (r < 0)
			r = stopped(err, r);
		break;
	case GC_SWEEP:
	case GC_SHRINK:
		pthread_mutex_lock(&s->write_lock);
		r = g->phase == GC_SWEEP ? sweep_some(g, budget, err) : shrink_some(g, budget, err);
		pthread_mutex_unlock(&s->write_lock);
		break;
	case GC_DONE:
		break;
	}
	if (r >= 0 && g->phase == GC_DONE)
		note_done(g);
	g->failed = r;
	g->progress.phase = g->phase;
	*ret = g->progress;
	return r < 0 ? r : g->phase != GC_DONE;
}

int gc_run(struct store *s, struct gc_progress *ret, struct err *err)
{
	CLEANUP(gc_end_p) struct gc *g = NULL;
	int r = gc_begin(s, &g, err);

	if (r < 0)
		return r;
	do
		r = gc_step(g, 1024, ret, err);
	while (r > 0);
	return r;
}
