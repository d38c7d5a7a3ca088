/*
 * A clone's snapshots cannot be reached by its name once it is gone, so they go with it, except
 * those that something else names (forget-i.h).
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "base/strlist.h"
#include "engine/act/acts-i.h"
#include "engine/act/allow-i.h"
#include "engine/act/events-i.h"
#include "engine/act/forget-i.h"
#include "engine/act/hide-i.h"
#include "engine/act/resolve-i.h"
#include "engine/act/unneeded-i.h"
#include "engine/api/clone.h"
#include "engine/host/host-i.h"

struct removal {
	struct clone clone;
	struct batch *batch;
	struct forget forget;
	struct err damage; /* if set, a record is damaged and the snapshots stay */
	struct err hidden; /* the same of the list of hidden files, which goes */
};

static void removal_done(struct removal *r)
{
	clone_done(&r->clone);
	batch_end(r->batch);
	forget_done(&r->forget);
}

static int collect_own(const struct snapshot *s, void *ctx, struct err *err)
{
	struct removal *r = ctx;

	if (!s->clone || strcmp(s->clone, r->clone.name) != 0 || s->created <= r->clone.created ||
	    !catalog_id_same(&s->project, &r->clone.project))
		return 0;
	return forget_add(&r->forget, s, err);
}

static int choose_snapshots(struct host *h, struct removal *r, struct err *err)
{
	int x = snapshot_each(h->store, collect_own, r, err);

	x = x < 0 ? x : forget_settle(&r->forget, h->store, r->clone.name, err);
	if (x != -EBADMSG)
		return x;
	/* We cannot tell which of the snapshots are needed: remove the clone, keep them all. */
	forget_done(&r->forget);
	r->damage = *err;
	return 0;
}

/* host->snapshots held for writing */
static int remove_records(struct host *h, struct removal *r, struct engine_removed *ret,
			  struct err *err)
{
	const char *name = r->clone.name;
	int x;

	*ret = (struct engine_removed){ 0 };
	x = choose_snapshots(h, r, err);
	if (x < 0)
		return x;
	x = batch_begin(h->store, &r->batch, err);
	if (x < 0)
		return x;
	x = forget_put(&r->forget, r->batch, &ret->snapshots, err);
	if (x < 0)
		return x;
	x = resolve_forget(h->store, r->batch, name, err);
	if (x < 0)
		return x;
	x = allow_forget(h->store, r->batch, name, err);
	if (x < 0)
		return x;
	/* Of snapshots that stay for damage we do not know which they are: the list stays, too. */
	x = r->damage.code ? 0 : hide_forget(h->store, r->batch, &r->clone, &r->forget, err);
	if (x < 0)
		return x;
	if (x > 0)
		r->hidden = *err;
	x = ref_delete(r->batch, REF_CLONE, name, strlen(name), err);
	return x < 0 ? x : batch_commit(r->batch, BATCH_SAFE, err);
}

/* What goes with it, about; more if a snapshot of its own goes too. */
static uint64_t bytes_of(const struct clone *c)
{
	const int64_t bytes = c->grown + c->meta;

	return bytes > 0 ? (uint64_t)bytes : 0;
}

static int remove_clone(struct task *task, const char *name, bool force, const char *why,
			struct engine_removed *ret, struct err *err)
{
	struct host *h = task->host;
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(removal_done) struct removal r = { 0 };
	struct catalog_id captured;
	int x = turns_take(&h->turns, name, &turn, err);

	if (x < 0)
		return x;
	x = clone_find(h->store, name, &r.clone, err);
	if (x < 0)
		return x;
	x = live_end(h, name, LIVE_DISCARD, force, err);
	if (x < 0)
		return x;
	captured = unneeded_of(h, &r.clone);
	pthread_rwlock_wrlock(&h->snapshots);
	x = remove_records(h, &r, ret, err);
	pthread_rwlock_unlock(&h->snapshots);
	if (x < 0)
		return x;
	unneeded_end(h, &captured);
	live_removed(h, bytes_of(&r.clone));
	if (r.clone.run == 0)
		event_removed(task, &r.clone, why);
	if (r.damage.code != 0)
		engine_warn(&task->engine, "clone '%s' is removed, but its snapshots stay: %s",
			    name, r.damage.msg);
	if (r.hidden.code != 0)
		engine_warn(&task->engine,
			    "clone '%s' is removed, but which files its runs must not see is lost "
			    "for snapshots of it that stay: %s",
			    name, r.hidden.msg);
	return x;
}

int clone_remove(struct task *task, const char *name, bool force, struct engine_removed *ret,
		 struct err *err)
{
	return remove_clone(task, name, force, "asked", ret, err);
}

/* --- those whose time is over ----------------------------------------------------------- */

#define BUSY_NS ((int64_t)5 * 1000000000) /* until we try again to remove a clone in use */

struct reaping {
	int64_t now, next;
	struct strlist names;
};

static void reaping_done(struct reaping *r)
{
	strlist_done(&r->names);
}

static int collect_expired(const struct clone *c, void *ctx, struct err *err)
{
	struct reaping *r = ctx;

	if (c->expires == 0)
		return 0;
	if (c->expires > r->now) {
		r->next = c->expires < r->next ? c->expires : r->next;
		return 0;
	}
	return strlist_add(&r->names, c->name) < 0 ? err_nomem(err) : 0;
}

void clone_reap(struct host *h)
{
	CLEANUP(reaping_done) struct reaping r = { .now = engine_now(), .next = INT64_MAX };
	struct engine_removed removed;
	struct task task = task_of(h);
	struct err err = { 0 };
	int64_t due;
	int x;

	pthread_mutex_lock(&h->lock);
	due = h->next_expiry;
	if (due <= r.now)
		h->next_expiry = INT64_MAX; /* making a clone lowers it again */
	pthread_mutex_unlock(&h->lock);
	if (due > r.now)
		return;
	x = clone_each(h->store, collect_expired, &r, &err);
	if (x < 0)
		log_warn("looking for clones that expired: %s, continuing", err.msg);
	for (size_t i = 0; i < r.names.n; i++) {
		x = remove_clone(&task, r.names.list[i], false, "expired", &removed, &err);
		if (x >= 0)
			log_info("clone '%s' expired and is removed", r.names.list[i]);
		else if (x != -EBUSY && x != -ENOENT)
			log_warn("removing an expired clone: %s, continuing", err.msg);
		if (x < 0 && r.now + BUSY_NS < r.next)
			r.next = r.now + BUSY_NS;
	}
	pthread_mutex_lock(&h->lock);
	if (r.next < h->next_expiry)
		h->next_expiry = r.next;
	pthread_mutex_unlock(&h->lock);
}
