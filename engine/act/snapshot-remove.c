/*
 * Removing one snapshot. Its records go now; objects that only it reached are then garbage. We
 * first find everything that needs it, so that the answer can name it; forget-i.h has the last
 * word.
 */
#include <errno.h>
#include <string.h>

#include "engine/act/acts-i.h"
#include "engine/act/events-i.h"
#include "engine/act/forget-i.h"
#include "engine/api/history.h"
#include "engine/host/host-i.h"

#define DIGITS_MIN 8 /* of an id, so that a name that happens to be hex costs no snapshot */

struct unwanted {
	struct snapshot snapshot;
	char hex[CATALOG_HEX_SIZE];
	char *tag; /* owned; the tag that named it and goes with it, or NULL */
	bool force;
	struct forget forget;
	struct batch *batch;
};

static void unwanted_done(struct unwanted *u)
{
	snapshot_done(&u->snapshot);
	free(u->tag);
	batch_end(u->batch);
	forget_done(&u->forget);
}

/* --- which ------------------------------------------------------------------------------ */

static bool is_short_id(const char *word)
{
	const size_t n = strlen(word);

	return n < DIGITS_MIN && strspn(word, "0123456789abcdefABCDEF") == n;
}

/* The tag that named the snapshot does not keep it. */
static int find_tag(struct store *s, const char *word, struct unwanted *u, struct err *err)
{
	CLEANUP(tag_done) struct tag tag = { 0 };
	AUTO_FREE char *full = tag_full_name(&u->snapshot.project, word);
	int r;

	if (!full)
		return err_nomem(err);
	r = tag_get(s, full, &tag, err);
	if (r >= 0 && catalog_id_same(&tag.snapshot, &u->snapshot.id))
		u->tag = TAKE_PTR(full);
	return r == -ENOENT ? 0 : r;
}

static int find_snapshot(struct task *task, const char *word, struct unwanted *u, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s = task->engine.store;
	int r;

	if (is_short_id(word))
		return err_set(err, -ENOENT,
			       "there is no snapshot '%s': to remove one takes at least %d digits "
			       "of its id",
			       word, DIGITS_MIN);
	r = state_resolve(&task->engine, s, word, &u->snapshot, err);
	if (r < 0)
		return r;
	r = find_tag(s, word, u, err);
	if (r < 0)
		return r;
	r = engine_as_damage(err, project_get(s, &u->snapshot.project, &project, err));
	if (r < 0)
		return r;
	catalog_id_hex(&u->snapshot.id, u->hex);
	if (project.hidden == PROJECT_TARGET)
		return err_set(err, -ECANCELED,
			       "snapshot %s is of '%s', where a promotion put something, and is "
			       "needed to undo that",
			       u->hex, project.path);
	if (project.hidden == PROJECT_OF_GIT)
		return err_set(
		    err, -ECANCELED,
		    "snapshot %s is of git's own directory '%s' and goes with the clones "
		    "that need it",
		    u->hex, project.path);
	return 0;
}

/* --- who needs it ----------------------------------------------------------------------- */

static int on_tag(const struct tag *t, void *ctx, struct err *err)
{
	const struct unwanted *u = ctx;
	const char *slash = strchr(t->name, '/');

	if (!catalog_id_same(&t->snapshot, &u->snapshot.id) ||
	    (u->tag && strcmp(t->name, u->tag) == 0))
		return 0;
	return err_set(err, -ECANCELED, "snapshot %s has the tag '%s'", u->hex,
		       slash ? slash + 1 : t->name);
}

static int on_clone(const struct clone *c, void *ctx, struct err *err)
{
	const struct unwanted *u = ctx;

	if (!catalog_id_same(&c->base, &u->snapshot.id) &&
	    !catalog_id_same(&c->start, &u->snapshot.id))
		return 0;
	return err_set(err, -EBUSY, "snapshot %s is what clone '%s' started from", u->hex, c->name);
}

static int on_lazy(const struct lazy *l, void *ctx, struct err *err)
{
	const struct unwanted *u = ctx;

	if (l->ended || !catalog_id_same(&l->snapshot, &u->snapshot.id))
		return 0;
	return err_set(err, -EBUSY, "snapshot %s is not captured yet; it can go when it is",
		       u->hex);
}

static const char *kind_name(const struct receipt *r)
{
	return r->kind == RECEIPT_PROMOTION  ? "promotion"
	       : r->kind == RECEIPT_ROLLBACK ? "rollback"
					     : "undo";
}

/* An undone receipt needs no snapshots: its undo has a receipt of its own. */
static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	const struct unwanted *u = ctx;
	const struct catalog_id *id = &u->snapshot.id;
	char hex[CATALOG_HEX_SIZE];

	if (r->state == RECEIPT_UNDONE ||
	    (!catalog_id_same(&r->before, id) && !catalog_id_same(&r->after, id) &&
	     !catalog_id_same(&r->base, id)))
		return 0;
	if (r->state == RECEIPT_BEGUN)
		return err_set(err, -EBUSY, "snapshot %s is needed by a %s that is under way",
			       u->hex, kind_name(r));
	if (u->force)
		return 0;
	return err_set(err, -ECANCELED,
		       "snapshot %s is needed to undo the %s %s; with '--force' it goes, and that "
		       "can no longer be undone",
		       u->hex, kind_name(r), catalog_id_hex(&r->id, hex));
}

static int check_need(struct store *s, struct unwanted *u, struct err *err)
{
	int r = clone_each(s, on_clone, u, err);

	if (r < 0)
		return r;
	r = lazy_each(s, on_lazy, u, err);
	if (r < 0)
		return r;
	r = tag_each(s, on_tag, u, err);
	if (r < 0)
		return r;
	r = receipt_each(s, on_receipt, u, err);
	if (r < 0)
		return r;
	r = forget_add(&u->forget, &u->snapshot, err);
	if (r < 0)
		return r;
	u->forget.tag = u->tag;
	r = forget_settle(&u->forget, s, NULL, err);
	if (r < 0)
		return r;
	if (forget_stays(&u->forget, &u->snapshot.id))
		return err_set(err, -EBUSY,
			       "snapshot %s is the base of one that a clone can go back to",
			       u->hex);
	return r;
}

/* --- its end ---------------------------------------------------------------------------- */

/* host->snapshots held for writing */
static int remove_it(struct task *task, const char *word, struct unwanted *u, struct err *err)
{
	struct store *s = task->engine.store;
	uint64_t gone;
	int r = find_snapshot(task, word, u, err);

	if (r < 0)
		return r;
	r = check_need(s, u, err);
	if (r < 0)
		return r;
	r = batch_begin(s, &u->batch, err);
	if (r < 0)
		return r;
	r = forget_put(&u->forget, u->batch, &gone, err);
	if (r < 0)
		return r;
	if (u->tag)
		r = ref_delete(u->batch, REF_TAG, u->tag, strlen(u->tag), err);
	return r < 0 ? r : batch_commit(u->batch, BATCH_SAFE, err);
}

int snapshot_remove(struct task *task, const char *word, bool force, char ret_id[ENGINE_ID_SIZE],
		    struct err *err)
{
	CLEANUP(unwanted_done) struct unwanted u = { .force = force };
	struct store *unused;
	int r = engine_store(&task->engine, STORE_WRITE, &unused, err);

	if (r < 0)
		return r;
	pthread_rwlock_wrlock(&task->host->snapshots);
	r = remove_it(task, word, &u, err);
	pthread_rwlock_unlock(&task->host->snapshots);
	if (r < 0)
		return r;
	event_snapshot_removed(task, &u.snapshot);
	memcpy(ret_id, u.hex, sizeof(u.hex));
	return 0;
}
