#include "engine/act/forget-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/find/hidden-i.h"

void forget_done(struct forget *f)
{
	free(f->list);
	*f = (struct forget){ 0 };
}

int forget_add(struct forget *f, const struct snapshot *s, struct err *err)
{
	if (!VEC_ROOM(f->list, f->n, f->cap))
		return err_nomem(err);
	f->list[f->n++] = (struct forget_one){ .id = s->id, .parent = s->parent };
	return 0;
}

int forget_add_id(struct forget *f, struct store *s, const struct catalog_id *id, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot snapshot = { 0 };
	int r = snapshot_get(s, id, &snapshot, err);

	return r == -ENOENT ? 0 : r < 0 ? r : forget_add(f, &snapshot, err);
}

static int by_id(const void *a, const void *b)
{
	const struct forget_one *x = a, *y = b;

	return memcmp(x->id.b, y->id.b, sizeof(x->id.b));
}

static struct forget_one *find_one(const struct forget *f, const struct catalog_id *id)
{
	const struct forget_one key = { .id = *id };

	return f->n > 0 ? bsearch(&key, f->list, f->n, sizeof(*f->list), by_id) : NULL;
}

bool forget_stays(const struct forget *f, const struct catalog_id *id)
{
	const struct forget_one *one = find_one(f, id);

	return one && one->stays;
}

bool forget_goes(const struct forget *f, const struct catalog_id *id)
{
	const struct forget_one *one = find_one(f, id);

	return one && !one->stays;
}

/* --- what stays ------------------------------------------------------------------------- */

struct naming {
	struct forget *forget;
	struct store *store;
	const char *except;
	bool more; /* this round kept another one */
};

static void mark_staying(struct naming *n, const struct catalog_id *id)
{
	struct forget_one *one = find_one(n->forget, id);

	if (!one || one->stays)
		return;
	one->stays = true;
	n->more = true;
}

static int on_tag(const struct tag *t, void *ctx, struct err *err)
{
	const struct naming *n = ctx;

	if (!n->forget->tag || strcmp(t->name, n->forget->tag) != 0)
		mark_staying(ctx, &t->snapshot);
	return 0;
}

static int on_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct naming *n = ctx;

	if (n->except && strcmp(c->name, n->except) == 0)
		return 0;
	mark_staying(n, &c->base);
	mark_staying(n, &c->start);
	return 0;
}

/* By these two the receipt is found when the change has happened (receipt_landed()). */
static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	const struct naming *n = ctx;
	const struct catalog_id *ending = n->forget->ending;

	if (r->state != RECEIPT_BEGUN || (ending && catalog_id_same(ending, &r->id)))
		return 0;
	mark_staying(ctx, &r->before);
	mark_staying(ctx, &r->after);
	return 0;
}

/* The promises of an open capture, which clones name, are found through its snapshot. */
static int on_lazy(const struct lazy *l, void *ctx, struct err *err)
{
	const struct naming *n = ctx;
	const struct lazy *goes = n->forget->capture;

	if (!l->ended && !(goes && catalog_id_same(&goes->id, &l->id)))
		mark_staying(ctx, &l->snapshot);
	return 0;
}

/* 1 if a clone's snapshot may name promises of the capture: unless its base is older than that. */
static int may_share(const struct naming *n, const struct snapshot *s, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	const struct lazy *l = n->forget->capture;
	int r;

	if (!l || !s->clone || s->created <= l->created || forget_goes(n->forget, &s->id) ||
	    !catalog_id_same(&s->project, &l->project))
		return 0;
	r = snapshot_get(n->store, &s->base, &base, err);
	return r == -ENOENT ? 1 : r < 0 ? r : base.created >= l->created;
}

/* A rollback to a clone's snapshot restores its base, so the base stays. */
static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct naming *n = ctx;
	int r = may_share(n, s, err);

	if (r < 0)
		return r;
	if (r > 0)
		mark_staying(n, &n->forget->capture->snapshot);
	if (!forget_goes(n->forget, &s->base) || forget_goes(n->forget, &s->id) ||
	    (n->except && s->clone && strcmp(s->clone, n->except) == 0))
		return 0;
	r = history_has_clone(n->store, s, err);
	if (r > 0)
		mark_staying(n, &s->base);
	return r < 0 ? r : 0;
}

int forget_settle(struct forget *f, struct store *s, const char *except, struct err *err)
{
	struct naming n = { .forget = f, .store = s, .except = except };
	int r;

	if (f->n == 0)
		return 0;
	qsort(f->list, f->n, sizeof(*f->list), by_id);
	r = tag_each(s, on_tag, &n, err);
	if (r < 0)
		return r;
	r = clone_each(s, on_clone, &n, err);
	if (r < 0)
		return r;
	r = lazy_each(s, on_lazy, &n, err);
	if (r >= 0 && !f->unborn)
		r = receipt_each(s, on_receipt, &n, err);
	if (r < 0)
		return r;
	/* A snapshot that stays keeps its base, too. */
	do {
		n.more = false;
		r = snapshot_each(s, on_snapshot, &n, err);
	} while (r >= 0 && n.more);
	return r;
}

/* --- what goes -------------------------------------------------------------------------- */

struct mending {
	const struct forget *forget;
	struct batch *batch;
};

static int mend_parent(const struct snapshot *s, void *ctx, struct err *err)
{
	const struct mending *m = ctx;
	struct snapshot mended = *s;

	if (forget_goes(m->forget, &s->id) || !forget_goes(m->forget, &s->parent))
		return 0;
	/* Bounded, because damaged records may form a circle. */
	for (size_t i = 0; i < m->forget->n && forget_goes(m->forget, &mended.parent); i++)
		mended.parent = find_one(m->forget, &mended.parent)->parent;
	if (forget_goes(m->forget, &mended.parent))
		mended.parent = (struct catalog_id){ 0 };
	return snapshot_put(m->batch, &mended, REF_REPLACE, err);
}

int forget_put(const struct forget *f, struct batch *b, uint64_t *ret, struct err *err)
{
	struct mending m = { .forget = f, .batch = b };
	char hex[CATALOG_HEX_SIZE];
	uint64_t gone = 0;
	int r = 0;

	if (f->n > 0)
		r = snapshot_each(batch_store(b), mend_parent, &m, err);
	for (size_t i = 0; i < f->n && r >= 0; i++) {
		if (f->list[i].stays)
			continue;
		catalog_id_hex(&f->list[i].id, hex);
		r = ref_delete(b, REF_SNAPSHOT, hex, strlen(hex), err);
		r = r < 0 ? r : hidden_drop_of(b, &f->list[i].id, err);
		gone++;
	}
	if (r < 0)
		return r;
	*ret = gone;
	return r;
}
