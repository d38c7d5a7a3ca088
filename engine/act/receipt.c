#include "engine/act/receipt-i.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/user.h"
#include "engine/act/forget-i.h"
#include "engine/act/promote-i.h"
#include "engine/find/digest-i.h"
#include "engine/find/unborn-i.h"
#include "engine/host/host-i.h"
#include "snapshot/apply/plan.h"

int receipt_begin(struct batch *b, struct receipt *r, struct err *err)
{
	int x = catalog_id_new(&r->id, err);

	if (x < 0)
		return x;
	r->state = RECEIPT_BEGUN;
	r->created = engine_now();
	r->uid = geteuid();
	r->who = user_name(geteuid());
	return r->who ? receipt_put(b, r, REF_NEW, err) : err_nomem(err);
}

/* --- the end of one --------------------------------------------------------------------- */

struct search {
	struct store *store;
	const struct object_id *from, *to;
	struct catalog_id found; /* the newest; zero: none */
	int64_t created;
};

/* 1 if the snapshot exists and has this root. */
static int has_root(struct store *s, const struct catalog_id *id, const struct object_id *root,
		    struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot snapshot = { 0 };
	int r = snapshot_get(s, id, &snapshot, err);

	return r == -ENOENT ? 0 : r < 0 ? r : object_id_equal(&snapshot.root, root);
}

static int is_it(const struct receipt *r, void *ctx, struct err *err)
{
	struct search *s = ctx;
	int x;

	if (r->state != RECEIPT_BEGUN ||
	    (!catalog_id_is_zero(&s->found) && r->created < s->created))
		return 0;
	x = has_root(s->store, &r->before, s->from, err);
	if (x > 0)
		x = has_root(s->store, &r->after, s->to, err);
	if (x > 0) {
		s->found = r->id;
		s->created = r->created;
	}
	return x < 0 ? x : 0;
}

/* Put the receipt with another state.  -ENOENT if it is gone, which does no harm. */
static int set_state(struct batch *b, struct store *s, const struct catalog_id *id,
		     enum receipt_state state, struct receipt *ret, struct err *err)
{
	int r = receipt_get(s, id, ret, err);

	if (r < 0)
		return r;
	ret->state = state;
	ret->base_due = !catalog_id_is_zero(&ret->next_base);
	return receipt_put(b, ret, REF_REPLACE, err);
}

/* Mark it undone.  If it was an undo itself, what it undid is done again, and so on down the chain. */
static int mark_undone(struct batch *b, struct store *s, const struct catalog_id *id,
		       struct err *err)
{
	enum receipt_state state = RECEIPT_UNDONE;
	struct catalog_id next = *id;
	int r = 0;

	while (r >= 0 && !catalog_id_is_zero(&next)) {
		CLEANUP(receipt_done) struct receipt target = { 0 };

		r = set_state(b, s, &next, state, &target, err);
		state = state == RECEIPT_DONE ? RECEIPT_UNDONE : RECEIPT_DONE;
		next = target.undoes;
	}
	return r == -ENOENT ? 0 : r;
}

int receipt_undone(struct store *s, const struct catalog_id *id, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = batch_begin(s, &b, err);

	if (r < 0)
		return r;
	r = mark_undone(b, s, id, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* A receipt without a digest is better than a change that never completes. */
static int put_digest(struct receipt *r, const struct plan *plan, struct receipt_landing *landing)
{
	struct err why = { 0 };

	if (r->kind == RECEIPT_ROLLBACK || r->sha256)
		return 0;
	if (digest_plan(landing->store, plan, landing->sha256, &why) < 0) {
		log_warn("computing the digest of a change: %s, continuing without one", why.msg);
		landing->sha256[0] = '\0';
		return 0;
	}
	r->sha256 = strdup(landing->sha256);
	return r->sha256 ? 0 : -ENOMEM;
}

int receipt_landed(const char *path, const struct plan *plan, void *ctx, struct err *err)
{
	struct receipt_landing *landing = ctx;
	struct store *store = landing->store;
	CLEANUP(receipt_done) struct receipt receipt = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct search search = { .store = store, .from = &plan->from, .to = &plan->to };
	int r = receipt_each(store, is_it, &search, err);

	(void)path; /* the roots identify the receipt */
	if (r < 0 || catalog_id_is_zero(&search.found))
		return r;
	r = receipt_get(store, &search.found, &receipt, err);
	if (r < 0)
		return r;
	if (put_digest(&receipt, plan, landing) < 0)
		return err_nomem(err);
	r = batch_begin(store, &b, err);
	if (r < 0)
		return r;
	receipt.state = RECEIPT_DONE;
	receipt.base_due = !catalog_id_is_zero(&receipt.next_base);
	r = receipt_put(b, &receipt, REF_REPLACE, err);
	if (r < 0)
		return r;
	if (!catalog_id_is_zero(&receipt.undoes))
		r = mark_undone(b, store, &receipt.undoes, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* --- finding ---------------------------------------------------------------------------- */

struct wanted {
	const struct catalog_id *project;
	const char *word; /* NULL: the newest */
	struct catalog_id found;
	int64_t created;
	unsigned n;
};

static int match_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	struct wanted *w = ctx;
	char hex[CATALOG_HEX_SIZE];

	if (r->state == RECEIPT_BEGUN || !catalog_id_same(&r->project, w->project))
		return 0;
	if (w->word ? strncmp(catalog_id_hex(&r->id, hex), w->word, strlen(w->word)) != 0
		    : r->state != RECEIPT_DONE || r->kind == RECEIPT_UNDO ||
			  (w->n > 0 && r->created < w->created))
		return 0;
	w->found = r->id;
	w->created = r->created;
	w->n++;
	return 0;
}

int receipt_find(struct store *s, const struct project *p, const char *word, struct receipt *ret,
		 struct err *err)
{
	struct wanted w = { .project = &p->id, .word = word };
	CLEANUP(receipt_done) struct receipt found = { 0 };
	int r;

	if (word && *word == '\0')
		return err_set(err, -EINVAL, "the name of the promotion is empty");
	r = receipt_each(s, match_receipt, &w, err);

	if (r < 0)
		return r;
	if (w.n == 0)
		return word ? err_set(err, -ENOENT, "'%s' is no promotion or rollback of '%s'",
				      word, p->path)
			    : err_set(err, -ENOENT, "there is nothing to undo in '%s'", p->path);
	if (word && w.n > 1)
		return err_set(err, -EINVAL, "'%s' is the beginning of %u promotions", word, w.n);
	r = receipt_get(s, &w.found, &found, err);
	if (r < 0)
		return r;
	if (found.state == RECEIPT_UNDONE)
		return err_set(err, -ENOENT, "'%s' was taken back already", word);
	*ret = TAKE_STRUCT(found);
	return 0;
}

/* --- what a dead daemon left ------------------------------------------------------------ */

struct left {
	struct batch *batch;
	struct store *store;
	struct forget forget; /* snapshots of changes that never happened */
	unsigned n;
};

static void left_done(struct left *l)
{
	forget_done(&l->forget);
}

static int add_left(const struct receipt *r, void *ctx, struct err *err)
{
	struct left *l = ctx;
	int x = 0;

	if (!unborn_by(r))
		return 0;
	if (!catalog_id_is_zero(&r->next_base) && !catalog_id_same(&r->next_base, &r->after))
		x = forget_add_id(&l->forget, l->store, &r->next_base, err);
	return x < 0 ? x : forget_add_id(&l->forget, l->store, &r->after, err);
}

static int remove_left(const struct receipt *r, void *ctx, struct err *err)
{
	struct left *l = ctx;
	char hex[CATALOG_HEX_SIZE];

	if (r->state != RECEIPT_BEGUN || (unborn_by(r) && forget_stays(&l->forget, &r->after)))
		return 0;
	l->n++;
	return ref_delete(l->batch, REF_RECEIPT, catalog_id_hex(&r->id, hex), CATALOG_HEX_SIZE - 1,
			  err);
}

static int sweep(struct store *s, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(left_done) struct left left = { .store = s };
	uint64_t unused;
	int r = batch_begin(s, &b, err);

	if (r < 0)
		return r;
	left.batch = b;
	left.forget.unborn = true;
	r = receipt_each(s, add_left, &left, err);
	if (r < 0)
		return r;
	r = forget_settle(&left.forget, s, NULL, err);
	if (r < 0)
		return r;
	r = forget_put(&left.forget, b, &unused, err);
	if (r < 0)
		return r;
	r = receipt_each(s, remove_left, &left, err);
	return r < 0 || left.n == 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

void receipt_sweep(struct host *h)
{
	struct err err = { 0 };

	if (sweep(h->store, &err) < 0)
		log_warn("removing records of changes that never happened: %s, continuing",
			 err.msg);
}
