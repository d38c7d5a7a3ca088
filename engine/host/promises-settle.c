/*
 * The end of a capture: snapshots and clones that name its promises get roots that name the kept
 * contents.
 *
 * First the clones, each in its turn, and those that were made meanwhile; then, while no clone can
 * be made of a snapshot, the snapshots and the end of the capture's record in one commit. Wherever
 * this is interrupted, the record is still there, and the next attempt finds some of it done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/vec.h"
#include "cowfs/store/pin.h"
#include "cowfs/store/settle.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"
#include "engine/host/signing-i.h"

#define CLONES_MS  500    /* while others make clones, before newcomers wait, */
#define HOLD_UP_MS 10000  /* and no longer than so, */
#define AGAIN_MS   120000 /* and again after that, if there was no gap */
#define WAIT_MS    50
#define END_MS     1000 /* that a comparison waits for an end */

/* A clone of one of the snapshots. */
struct settled_clone {
	char *name; /* owned */
	int64_t created;
	bool done;
};

struct settling {
	struct promising *p;
	struct store *store;
	struct settle *settle; /* owned */
	/*
	 * The capture's, and those made of it, of any generation: a clone that gets a git directory of
	 * its own starts from such a one, and a run in a clone begins with one.  No other can name a
	 * promise, as whoever takes one waits for the end.
	 */
	struct catalog_id *snapshots; /* owned */
	size_t n_snapshots, cap_snapshots;
	struct settled_clone *clones; /* owned */
	size_t n, cap;
	int64_t newest;        /* of the snapshots, when it was taken */
	struct object_id root; /* what the capture's snapshot became; zero: it is gone */
	/* What was settled stays until all is: one clone may share what only another one reaches. */
	struct object_id *pins; /* owned */
	size_t n_pins, cap_pins;
};

static void settling_done(struct settling *s)
{
	VEC_FREE(at, s->clones, s->n, free(at->name));
	for (size_t i = 0; i < s->n_pins; i++)
		store_unpin(s->store, OBJECT_TREE, &s->pins[i]);
	free(s->snapshots);
	free(s->pins);
	settle_free(s->settle);
}

/* What became of a promise; of another capture's nothing is known here. */
static int find_kept(const struct object_id *promise, struct content *ret, void *ctx,
		     struct err *err)
{
	const struct object_ref key = { .id = *promise, .kind = OBJECT_CHUNK };
	const struct promising *p = ctx;
	const struct promise *one = map_get(&p->by_id, &key);

	if (!one || one->state != PROMISE_KEPT)
		return 0;
	*ret = one->content;
	return 1;
}

static int pin(struct settling *s, const struct object_id *root, struct err *err)
{
	int r;

	if (!VEC_ROOM(s->pins, s->n_pins, s->cap_pins))
		return err_nomem(err);
	r = store_pin(s->store, OBJECT_TREE, root, err);
	if (r >= 0)
		s->pins[s->n_pins++] = *root;
	return r;
}

/* --- clones ------------------------------------------------------------------------------- */

static bool is_noted(const struct settling *s, const struct catalog_id *id)
{
	return VEC_HAS(it, s->snapshots, s->n_snapshots, catalog_id_same(it, id));
}

/* A parent may have been removed; a clone's base is there as long as the clone's snapshots. */
static bool comes_from(const struct settling *s, const struct snapshot *one)
{
	const struct catalog_id *origin = &s->p->record.snapshot;

	return promising_may_inherit(&s->p->record, one) || catalog_id_same(&one->id, origin) ||
	       catalog_id_same(&one->parent, origin) || catalog_id_same(&one->base, origin) ||
	       is_noted(s, &one->parent) || is_noted(s, &one->base);
}

static int note_snapshot(const struct snapshot *one, void *ctx, struct err *err)
{
	struct settling *s = ctx;

	if (is_noted(s, &one->id) || !comes_from(s, one))
		return 0;
	if (!VEC_ROOM(s->snapshots, s->n_snapshots, s->cap_snapshots))
		return err_nomem(err);
	s->snapshots[s->n_snapshots++] = one->id;
	s->newest = one->created > s->newest ? one->created : s->newest;
	return 0;
}

static int note_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct settling *s = ctx;

	if (!is_noted(s, &c->base) && !is_noted(s, &c->start))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->clones[i].created == c->created && strcmp(s->clones[i].name, c->name) == 0)
			return 0;
	if (!VEC_ROOM(s->clones, s->n, s->cap))
		return err_nomem(err);
	s->clones[s->n] = (struct settled_clone){ .name = strdup(c->name), .created = c->created };
	if (!s->clones[s->n].name)
		return err_nomem(err);
	s->n++;
	return 0;
}

static int settle_stored(struct settling *s, struct clone *c, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct object_id before = c->root;
	int r = batch_begin(s->store, &b, err);

	r = r < 0 ? r : settle_root(s->settle, b, &before, &c->root, err);
	r = r < 0 ? r : clone_put(b, c, REF_REPLACE, err);
	r = r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
	return r < 0 ? r : pin(s, &c->root, err);
}

/* The caller has its turn, so it can be neither removed nor unmounted meanwhile. */
static int settle_live(struct settling *s, const char *name, struct layer *layer, struct err *err)
{
	CLEANUP(clone_done) struct clone c = { 0 };
	int r = layer_settle(layer, s->settle, err);

	r = r < 0 ? r : clone_get(s->store, name, &c, err);
	return r < 0 ? r : pin(s, &c.root, err);
}

static int settle_clone(struct settling *s, struct settled_clone *one, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone c = { 0 };
	struct host *h = s->p->all->host;
	struct live *live;
	int r = turns_take(&h->turns, one->name, &turn, err);

	if (r < 0)
		return r;
	live = live_find(h, one->name);
	r = clone_get(s->store, one->name, &c, err);
	if (r == -ENOENT || (r >= 0 && c.created != one->created)) {
		one->done = true; /* it is gone */
		return 0;
	}
	if (r >= 0)
		r = live && live->layer ? settle_live(s, one->name, live->layer, err)
					: settle_stored(s, &c, err);
	one->done = r >= 0;
	return r;
}

static int note_all(struct settling *s, struct err *err)
{
	size_t before;
	int r;

	s->n_snapshots = 0;
	/* They come in the order of their ids, and a child may come before its parent. */
	do {
		before = s->n_snapshots;
		r = snapshot_each(s->store, note_snapshot, s, err);
	} while (r >= 0 && s->n_snapshots > before);
	return r < 0 ? r : clone_each(s->store, note_clone, s, err);
}

static int settle_clones(struct settling *s, struct err *err)
{
	int r = note_all(s, err);

	for (size_t i = 0; r >= 0 && i < s->n; i++)
		if (!s->clones[i].done)
			r = settle_clone(s, &s->clones[i], err);
	return r;
}

/* --- snapshots ---------------------------------------------------------------------------- */

struct renewing {
	struct settling *s;
	struct batch *b;
};

static int renew_snapshot(const struct snapshot *one, void *ctx, struct err *err)
{
	struct renewing *w = ctx;
	struct snapshot next = *one;
	int r;

	if (!is_noted(w->s, &one->id))
		return 0;
	r = settle_root(w->s->settle, w->b, &one->root, &next.root, err);
	if (catalog_id_same(&one->id, &w->s->p->record.snapshot))
		w->s->root = next.root;
	if (r < 0 || object_id_equal(&next.root, &one->root))
		return r;
	return snapshot_put(w->b, &next, REF_REPLACE, err);
}

static int end_record(struct settling *s, struct batch *b, struct err *err)
{
	const int64_t now = engine_now();
	struct lazy next = s->p->record;
	int r;

	if (s->p->lost == 0)
		return lazy_delete(b, &s->p->record.id, err);
	/* Whatever the clock says, its heirs are no younger (promises-lend.c). */
	next.ended = (uint64_t)(now > s->newest ? now : s->newest);
	r = promising_put_lost(s->p, b, &next.root, err);
	return r < 0 ? r : lazy_put(b, &next, REF_REPLACE, err);
}

static int put_end(struct settling *s, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct renewing w = { .s = s };
	int r = batch_begin(s->store, &b, err);

	w.b = b;
	r = r < 0 ? r : snapshot_each(s->store, renew_snapshot, &w, err);
	r = r < 0 ? r : end_record(s, b, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/*
 * host->snapshots held for writing.  Its record and its snapshot may have gone while it was about to end.  Whoever
 * halted it has let host->snapshots go by now, and is about to say whether they have; to put the record meanwhile
 * would bring it back.
 */
static bool is_unneeded(const struct promising *p)
{
	LOCKED(&p->all->lock);

	while (p->halted && !p->unneeded)
		pthread_cond_wait(&p->all->changed, &p->all->lock);
	return p->unneeded;
}

/* host->snapshots held for writing.  0 if a clone has to be settled first. */
static int end_locked(struct settling *s, struct err *err)
{
	int r;

	if (is_unneeded(s->p))
		return err_set(err, -ECANCELED, "nobody needs it any more");
	r = note_all(s, err);
	for (size_t i = 0; r >= 0 && i < s->n; i++)
		if (!s->clones[i].done)
			return 0;
	r = r < 0 ? r : put_end(s, err);
	return r < 0 ? r : 1;
}

/* The next capture of the project need not read what this one has; it costs time alone if that fails. */
static void leave_signatures(const struct settling *s)
{
	CLEANUP(signatures_free_p) struct signatures *settled = NULL;
	CLEANUP(signatures_free_p) struct signatures *old = TAKE_PTR(s->p->signatures);
	const struct lazy *record = &s->p->record;
	struct err err = { 0 };
	int r;

	if (!old || object_id_is_zero(&s->root))
		return;
	r = signatures_settle(old, s->settle, &s->root, store_key(s->store), &settled, &err);
	if (r < 0)
		log_warn("signatures of '%s': %s, continuing; the next snapshot takes longer",
			 s->p->dir, err.msg);
	else
		signing_write_late(s->p->all->host, &record->project, s->p->dir, settled,
				   record->created);
}

/* --- settling, and clones that are made meanwhile ------------------------------------------ */

/* lock held; does a capture of this project end? */
static bool is_settling(const struct promises *p, const struct catalog_id *project)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (c->settling && catalog_id_same(&c->record.project, project))
			return true;
	return false;
}

/* lock held; does anybody make clones of its project?  Makers of others may hang on file systems of their own. */
static bool is_stayed(const struct promising *c)
{
	for (const struct promises_stay *s = c->all->stays; s; s = s->next)
		if (catalog_id_same(&s->project, &c->record.project))
			return true;
	return false;
}

void promises_stay(struct promises *p, struct promises_stay *s)
{
	pthread_mutex_lock(&p->lock);
	while (is_settling(p, &s->project))
		pthread_cond_wait(&p->changed, &p->lock);
	s->next = p->stays;
	p->stays = s;
	pthread_mutex_unlock(&p->lock);
	promises_linger("SNAPCOW_STAY_PAUSE");
}

void promises_go(struct promises *p, struct promises_stay *s)
{
	struct promises_stay **at = &p->stays;
	LOCKED(&p->lock);

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	pthread_cond_broadcast(&p->changed);
}

/* lock held; a capture that others borrow from may take long to end */
static bool is_ending(const struct promises *p, const struct catalog_id *project)
{
	for (const struct promising *c = p->first; c; c = c->after)
		if (promising_is_open(c) && c->closing && c->lent == 0 &&
		    (!project || catalog_id_same(project, &c->record.project)))
			return !p->ending;
	return false;
}

void promises_let_end(struct promises *p, const struct catalog_id *project)
{
	const uint64_t until = engine_clock_ms() + END_MS;
	LOCKED(&p->lock);

	while (is_ending(p, project) && engine_clock_ms() < until)
		promises_wait_ms(p, WAIT_MS);
}

uint64_t promises_left(struct promises *p)
{
	uint64_t n = 0;
	LOCKED(&p->lock);

	for (const struct promising *c = p->first; c; c = c->after) {
		const struct engine_capturing now = promising_news(c);

		if (!c->record.remote)
			n += engine_capturing_left(&now);
	}
	return n;
}

/* lock held */
static void end_settling(struct promising *c)
{
	c->settling = false;
	pthread_cond_broadcast(&c->all->changed);
}

/* lock held; with patience it may not while anybody makes clones of its project */
static bool may_settle(const struct promising *c, bool patience)
{
	return c->lent == 0 && !is_settling(c->all, &c->record.project) &&
	       (!patience || !is_stayed(c));
}

/*
 * Wait until nobody makes clones of its project, and have them wait.  It lends nothing any more, so no walk begins that
 * it would have to wait for; those who make clones may follow each other without end, so after a while newcomers wait.
 * Not for long: one who is at it may be stuck, on a file system that hangs for instance.  Then it is as if the end had
 * not begun, and it is tried again, seldom.
 * -ECANCELED: cowfsd ends, and somebody may read much before a clone is made; or nobody needs it any more.
 */
static int begin_settling(struct promising *c, struct err *err)
{
	struct promises *p = c->all;
	uint64_t until;
	LOCKED(&p->lock);

	for (uint64_t patience = CLONES_MS;; patience = AGAIN_MS) {
		until = engine_clock_ms() + patience;
		while (!promising_is_over(c) && !may_settle(c, engine_clock_ms() < until))
			promises_wait_ms(p, WAIT_MS);
		if (promising_is_over(c))
			return err_set(err, -ECANCELED, "nobody needs it, or cowfsd ends");
		c->settling = true;
		c->closing = true;
		until = engine_clock_ms() + HOLD_UP_MS;
		while (!promising_is_over(c) && is_stayed(c) && engine_clock_ms() < until)
			promises_wait_ms(p, WAIT_MS);
		c->closing = !is_stayed(c);
		if (c->closing && !promising_is_over(c))
			return 0;
		end_settling(c); /* and it lends again */
	}
}

/* No clone is being made.  0 if one was all the same. */
static int end(struct settling *s, struct err *err)
{
	pthread_rwlock_t *snapshots = &s->p->all->host->snapshots;
	int r = settle_clones(s, err); /* those that were made meanwhile */

	if (r < 0)
		return r;
	pthread_rwlock_wrlock(snapshots);
	r = end_locked(s, err);
	pthread_rwlock_unlock(snapshots);
	return r;
}

static int settle_all(struct settling *s, struct err *err)
{
	struct promises *p = s->p->all;
	int r = 0;

	while (r == 0) {
		r = settle_clones(s, err);
		r = r < 0 ? r : begin_settling(s->p, err);
		if (r < 0)
			return r;
		r = end(s, err);
		pthread_mutex_lock(&p->lock);
		end_settling(s->p);
		pthread_mutex_unlock(&p->lock);
	}
	return r;
}

static void set_closing(struct promising *c, bool closing)
{
	LOCKED(&c->all->lock);

	c->closing = closing;
	pthread_cond_broadcast(&c->all->changed);
}

int promising_settle(struct promising *p, struct err *err)
{
	CLEANUP(settling_done) struct settling s = { .p = p, .store = p->all->host->store };
	int r = settle_new(find_kept, p, &s.settle, err);

	set_closing(p, true);
	r = r < 0 ? r : settle_all(&s, err);
	if (r < 0) {
		set_closing(p, false);
		return r;
	}
	promises_linger("SNAPCOW_SETTLED_PAUSE");
	leave_signatures(&s);
	return 0;
}
