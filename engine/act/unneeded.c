#include "engine/act/unneeded-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "engine/act/forget-i.h"
#include "engine/find/engine-i.h"
#include "engine/host/host-i.h"
#include "engine/host/keep-i.h"
#include "engine/host/promises-i.h"

struct catalog_id unneeded_of(struct host *h, const struct clone *c)
{
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	struct engine_capturing news;
	struct err ignored = { 0 };

	if (!promises_open(h->promises, &c->project) ||
	    snapshot_get(h->store, &c->base, &base, &ignored) < 0)
		return (struct catalog_id){ 0 };
	promises_news(h->promises, &base.id, &news);
	/* A base with a git directory of the clone's own was made of what was captured. */
	return base.clone && !news.open ? base.parent : base.id;
}

/* The tag that a fetch gave to its snapshot, which goes with that; owned.  NULL: there is none. */
static char *tag_of(struct host *h, const struct lazy *l)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct err ignored = { 0 };

	if (l->remote == 0 || snapshot_get(h->store, &l->snapshot, &s, &ignored) < 0 || !s.clone)
		return NULL;
	return tag_full_name(&s.project, s.clone);
}

/* It may name another snapshot by now. */
static int delete_tag(struct batch *b, const struct lazy *l, const char *name, struct err *err)
{
	CLEANUP(tag_done) struct tag tag = { 0 };
	int r = tag_get(batch_store(b), name, &tag, err);

	if (r < 0 || !catalog_id_same(&tag.snapshot, &l->snapshot))
		return r == -ENOENT ? 0 : r;
	return ref_delete(b, REF_TAG, name, strlen(name), err);
}

/* --- clones that are yet to come ------------------------------------------------------------ */

/* A client has its capture and has not asked for the clone of it yet. */
struct awaited {
	struct kept kept; /* of the client's connection */
	struct host *host;
	struct catalog_id captured;
	struct awaited *next; /* guarded by host->lock */
};

static bool is_awaited(struct host *h, const struct catalog_id *captured)
{
	bool found = false;

	LOCKED(&h->lock);
	for (const struct awaited *a = h->awaited; a && !found; a = a->next)
		found = catalog_id_same(&a->captured, captured);
	return found;
}

static void release_awaited(struct kept *k)
{
	struct awaited *a = (struct awaited *)k, **at;
	struct host *h = a->host;

	pthread_mutex_lock(&h->lock);
	for (at = &h->awaited; *at != a; at = &(*at)->next)
		;
	*at = a->next;
	pthread_mutex_unlock(&h->lock);
	unneeded_end(h, &a->captured);
	free(a);
}

int unneeded_await_clone(struct task *task, const struct catalog_id *captured, struct err *err)
{
	struct awaited *a = calloc(1, sizeof(*a));
	struct host *h = task->host;

	if (!a) {
		unneeded_end(h, captured);
		return err_nomem(err);
	}
	*a = (struct awaited){ .kept.release = release_awaited, .host = h, .captured = *captured };
	pthread_mutex_lock(&h->lock);
	a->next = h->awaited;
	h->awaited = a;
	pthread_mutex_unlock(&h->lock);
	keep_add(task->kept, &a->kept);
	return 0;
}

/* --- the end -------------------------------------------------------------------------------- */

static int is_it(const struct lazy *l, void *ctx, struct err *err)
{
	const struct lazy *wanted = ctx;

	return l->ended == 0 && catalog_id_same(&l->id, &wanted->id);
}

/* host->snapshots held for writing.  1 if it is gone.  The caller that halts it also resumes it. */
static int end_locked(struct host *h, const struct lazy *l, bool *ret_halted, struct err *err)
{
	AUTO_FREE char *tag = tag_of(h, l);
	CLEANUP(forget_done) struct forget f = { .capture = l, .tag = tag };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	uint64_t unused;
	int r =
	    is_awaited(h, &l->snapshot) ? 0 : lazy_each(h->store, is_it, (void *)(uintptr_t)l, err);

	/* It may have come to its end since it was found, or somebody else may have ended it. */
	if (r <= 0)
		return r;
	r = forget_add_id(&f, h->store, &l->snapshot, err);
	r = r < 0 ? r : forget_settle(&f, h->store, NULL, err);
	if (r < 0 || forget_stays(&f, &l->snapshot))
		return r < 0 ? r : 0;
	promises_halt(h->promises, &l->snapshot);
	*ret_halted = true;
	r = batch_begin(h->store, &b, err);
	r = r < 0 ? r : forget_put(&f, b, &unused, err);
	if (r >= 0 && tag)
		r = delete_tag(b, l, tag, err);
	r = r < 0 ? r : lazy_delete(b, &l->id, err);
	r = r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
	return r < 0 ? r : 1;
}

static void end_one(struct host *h, const struct lazy *l)
{
	struct err err = { 0 };
	bool halted = false;
	int r;

	pthread_rwlock_wrlock(&h->snapshots);
	r = end_locked(h, l, &halted, &err);
	pthread_rwlock_unlock(&h->snapshots);
	if (halted)
		promises_resume(h->promises, &l->snapshot, r > 0);
	if (r < 0)
		log_warn("a lazy capture that nobody needs: %s, continuing with it", err.msg);
}

struct passing {
	const struct catalog_id *captured; /* NULL: any */
	struct lazy *list;                 /* owned */
	size_t n, cap;
};

static void passing_done(struct passing *p)
{
	free(p->list);
}

static int note(const struct lazy *l, void *ctx, struct err *err)
{
	struct passing *p = ctx;

	if (l->passing == 0 || l->ended != 0 ||
	    (p->captured && !catalog_id_same(&l->snapshot, p->captured)))
		return 0;
	if (!VEC_ROOM(p->list, p->n, p->cap))
		return err_nomem(err);
	p->list[p->n++] = *l;
	return 0;
}

static void end_all(struct host *h, const struct catalog_id *captured)
{
	CLEANUP(passing_done) struct passing p = { .captured = captured };
	struct err err = { 0 };

	if (lazy_each(h->store, note, &p, &err) < 0)
		log_warn("looking for lazy captures: %s, continuing", err.msg);
	for (size_t i = 0; i < p.n; i++)
		end_one(h, &p.list[i]);
}

void unneeded_end(struct host *h, const struct catalog_id *captured)
{
	if (!catalog_id_is_zero(captured))
		end_all(h, captured);
}

void unneeded_sweep(struct host *h)
{
	end_all(h, NULL);
}

void unneeded_give_up(struct task *task, const struct catalog_id *start, const char *from)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct err ignored = { 0 };

	if (!catalog_id_is_zero(start))
		unneeded_end(task->host, start);
	else if (from && state_resolve(&task->engine, task->host->store, from, &s, &ignored) >= 0)
		unneeded_end(task->host, &s.id);
}
