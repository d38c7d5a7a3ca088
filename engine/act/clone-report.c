#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/store/root.h"
#include "cowfs/store/unshared.h"
#include "engine/act/acts-i.h"
#include "engine/act/stale-i.h"
#include "engine/api/clone.h"
#include "engine/find/allow-i.h"
#include "engine/find/gitdir-i.h"
#include "engine/find/part-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"
#include "snapshot/diff/changes.h"

/* Many clones share a project and a base, so both are kept for the next clone. */
struct telling {
	struct task *task;
	struct project project; /* id zero: not looked for yet */
	struct snapshot newest; /* of that project; id zero: it has none */
	struct snapshot base;
	struct engine_stale stale; /* of that base */
	struct engine_clones clones;
	size_t cap;
	const struct catalog_id *only; /* clones of that project; NULL: all */
};

static void telling_done(struct telling *t)
{
	project_done(&t->project);
	snapshot_done(&t->newest);
	snapshot_done(&t->base);
	engine_clones_done(&t->clones);
}

static int find_project(struct telling *t, const struct catalog_id *id, struct err *err)
{
	struct store *s = t->task->engine.store;
	int r;

	if (catalog_id_same(&t->project.id, id))
		return 0;
	project_done(&t->project);
	snapshot_done(&t->newest);
	snapshot_done(&t->base);
	t->project = (struct project){ 0 };
	t->newest = t->base = (struct snapshot){ 0 };
	r = engine_as_damage(err, project_get(s, id, &t->project, err));
	if (r < 0)
		return r;
	r = history_newest(s, id, &t->newest, err);
	return r == -ENOENT ? 0 : r;
}

/* A lazy capture that has ended since the snapshot was read gave it another root. */
static int reread(struct store *s, struct snapshot *one, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot now = { 0 };
	int r = snapshot_get(s, &one->id, &now, err);

	if (r >= 0)
		one->root = now.root;
	return r == -ENOENT ? 0 : r;
}

/* Compares with the newest snapshot; the project itself is not read. */
static int measure_stale(struct telling *t, struct err *err)
{
	struct store *s = t->task->engine.store;
	const struct object_id *from = &t->base.root, *to = &t->newest.root;
	struct changes c = { 0 };
	int r = 0;

	t->stale = (struct engine_stale){ 0 };
	if (catalog_id_is_zero(&t->newest.id))
		return 0;
	/* What is promised here is compared with nothing. */
	if (!object_id_equal(from, to) && promises_open(t->task->host->promises, &t->base.project))
		return 0;
	if (!object_id_equal(from, to)) {
		r = reread(s, &t->base, err);
		r = r < 0 ? r : reread(s, &t->newest, err);
	}
	if (r < 0)
		return r;
	if (t->base.part)
		r = part_count_changes(s, t->base.part, from, to, &c, err);
	else if (!object_id_equal(from, to))
		r = t->base.clone ? gitdir_count_changes(s, from, to, &c, err)
				  : changes_count(s, from, to, &c, err);
	if (r < 0)
		return r;
	t->stale.known = true;
	t->stale.as_of = t->newest.created;
	t->stale.paths = c.added + c.modified + c.deleted;
	if (t->stale.paths > 0 && t->newest.created > t->base.created)
		t->stale.behind_ms = (uint64_t)(t->newest.created - t->base.created) / 1000000;
	return 0;
}

static int find_base(struct telling *t, const struct catalog_id *id, struct err *err)
{
	struct err why = { 0 };
	int r;

	if (catalog_id_same(&t->base.id, id))
		return 0;
	snapshot_done(&t->base);
	t->base = (struct snapshot){ 0 };
	r = engine_as_damage(err, snapshot_get(t->task->engine.store, id, &t->base, err));
	if (r < 0)
		return r;
	if (measure_stale(t, &why) < 0)
		engine_warn(&t->task->engine, "comparing with the project: %s, continuing",
			    why.msg);
	return r;
}

/* --- one clone -------------------------------------------------------------------------- */

static int bytes_of(struct store *s, const struct object_id *id, uint64_t *ret, struct err *err)
{
	struct root root;
	int r = root_get(s, id, &root, err);

	if (r < 0)
		return r;
	*ret = root.top.below.bytes + root.in_links.bytes;
	return r;
}

/* The root as of now.  The caller has the clone's turn. */
static int persist(struct live *live, struct object_id *root, struct err *err)
{
	struct layer_state state;
	struct layer_usage usage;
	int r;

	layer_usage(live->layer, &usage);
	if (!usage.changed)
		return 0;
	r = layer_persist(live->layer, BATCH_SAFE, NULL, NULL, &state, err);
	if (r < 0)
		return r;
	*root = state.id;
	return r;
}

/* A base with a git directory of the clone's own was made of what was captured; a part was captured itself. */
static const struct catalog_id *captured_as(const struct telling *t, const struct snapshot *base)
{
	struct engine_capturing own;

	/* One that was fetched counts as a stranger's clone, and was promised itself. */
	promises_news(t->task->host->promises, &base->id, &own);
	return own.files == 0 && base->clone && !catalog_id_is_zero(&base->parent) ? &base->parent
										   : &base->id;
}

/*
 * While a capture is under way a clone may name what it has kept where its base names a promise, and the other way
 * round: the two are compared as what they stand for.
 */
static int count_changes(struct telling *t, const struct object_id *root, struct changes *ret,
			 struct err *err)
{
	struct store *s = t->task->engine.store;
	struct engine_capturing news;
	int r;

	if (object_id_equal(&t->base.root, root)) {
		*ret = (struct changes){ 0 };
		return 0;
	}
	promises_news(t->task->host->promises, captured_as(t, &t->base), &news);
	r = reread(s, &t->base, err);
	if (r >= 0 && news.open) {
		r = stale_count(t->task, &t->base.root, root, ret, err);
		promises_news(t->task->host->promises, captured_as(t, &t->base), &news);
		if (r < 0 || news.open)
			return r;
		/* It has ended meanwhile, and nobody knows any more what was promised. */
		r = reread(s, &t->base, err);
	}
	return r < 0 ? r : changes_count(s, &t->base.root, root, ret, err);
}

static int report_content(struct telling *t, struct clone *c, struct engine_clone *ret,
			  struct err *err)
{
	struct live *live = live_find(t->task->host, c->name);
	struct store *s = t->task->engine.store;
	struct changes changes;
	struct layer_usage usage;
	struct unshared own;
	uint64_t bytes;
	int r = 0;

	if (live) {
		r = persist(live, &c->root, err);
		layer_usage(live->layer, &usage);
		ret->used = usage.used;
		ret->quota = usage.quota;
		ret->mounted = live->mount && !mount_ended(live->mount);
	} else {
		r = bytes_of(s, &c->root, &bytes, err);
		ret->used = r >= 0 && bytes > t->base.bytes ? bytes - t->base.bytes : 0;
	}
	if (r < 0)
		return r;
	r = count_changes(t, &c->root, &changes, err);
	if (r < 0)
		return r;
	r = unshared_count(s, &c->root, &t->base.root, &own, err);
	if (r < 0)
		return r;
	ret->compared = true;
	ret->own = own.bytes;
	ret->added = changes.added;
	ret->modified = changes.modified;
	ret->deleted = changes.deleted;
	return 0;
}

static int report_allowed(struct telling *t, const struct clone *c, struct engine_clone *ret,
			  struct err *err)
{
	CLEANUP(engine_allowed_done) struct engine_allowed a = { 0 };
	int r = allowed_load(t->task->engine.store, c, &a, err);

	if (r < 0 || a.rules.n == 0)
		return r;
	ret->allow = allowed_join(&a.rules);
	return ret->allow ? 0 : err_nomem(err);
}

/* -ENOENT if it has just been removed. */
static int report_clone(struct telling *t, const char *name, struct engine_clone *ret,
			struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone c = { 0 };
	CLEANUP(engine_clone_done) struct engine_clone one = { 0 };
	struct err why = { 0 };
	int r = turns_take(&t->task->host->turns, name, &turn, err);

	if (r < 0)
		return r;
	r = clone_find(t->task->engine.store, name, &c, err);
	if (r < 0)
		return r;
	r = find_project(t, &c.project, err);
	if (r < 0)
		return r;
	r = find_base(t, &c.base, err);
	if (r < 0)
		return r;
	one.name = strdup(name);
	one.path = live_path(t->task->host, name);
	one.project = strdup(t->project.path);
	one.part = t->base.part ? strdup(t->base.part) : NULL;
	if (!one.name || !one.path || !one.project || (t->base.part && !one.part))
		return err_nomem(err);
	catalog_id_hex(&c.base, one.base);
	one.who = TAKE_PTR(c.who);
	one.via = TAKE_PTR(c.via);
	one.created = c.created;
	one.expires = c.expires;
	one.quota = c.quota;
	one.strict = c.strict;
	one.private = c.private;
	one.no_xattrs = c.no_xattrs;
	one.stale = t->stale;
	promises_news(t->task->host->promises, captured_as(t, &t->base), &one.capturing);
	r = report_allowed(t, &c, &one, err);
	if (r < 0)
		return r;
	/* The rest is worth reporting even if the changes cannot be counted. */
	if (report_content(t, &c, &one, &why) < 0)
		engine_warn(&t->task->engine, "clone '%s': %s, continuing", name, why.msg);
	*ret = TAKE_STRUCT(one);
	return 0;
}

/* --- many ------------------------------------------------------------------------------- */

/* The walk holds a connection to the store, so it only collects names. */
static int collect_name(const struct clone *c, void *ctx, struct err *err)
{
	struct telling *t = ctx;
	struct engine_clones *clones = &t->clones;

	if (t->only && !catalog_id_same(&c->project, t->only))
		return 0;
	if (!VEC_ROOM(clones->list, clones->n, t->cap))
		return err_nomem(err);
	clones->list[clones->n] = (struct engine_clone){ .name = strdup(c->name) };
	return clones->list[clones->n++].name ? 0 : err_nomem(err);
}

int clone_list(struct task *task, bool all, struct engine_clones *ret, struct err *err)
{
	CLEANUP(telling_done) struct telling t = { .task = task };
	CLEANUP(project_done) struct project project = { 0 };
	const uint64_t start = engine_clock_ms();
	size_t kept = 0;
	int r = 0;

	if (!all) {
		r = project_around(&task->engine, task->engine.store, &project, err);
		t.only = &project.id;
	}
	if (r < 0)
		return r;
	promises_let_end(task->host->promises, t.only);
	r = clone_each(task->engine.store, collect_name, &t, err);
	for (size_t i = 0; i < t.clones.n && r >= 0; i++) {
		struct engine_clone told = { 0 };

		r = report_clone(&t, t.clones.list[i].name, &told, err);
		if (r < 0 && r != -ENOENT)
			break;
		engine_clone_done(&t.clones.list[i]);
		if (r >= 0)
			t.clones.list[kept++] = told;
		r = 0;
	}
	if (r < 0)
		return r;
	t.clones.n = kept;
	t.clones.project = TAKE_PTR(project.path);
	t.clones.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(t.clones);
	return 0;
}

/* --- status ----------------------------------------------------------------------------- */

struct tally {
	struct host *host;
	const struct catalog_id *project;
	struct engine_overview *to;
	bool by_user; /* a user asked for the newest one seen so far */
};

static int count_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	const bool by_user = !history_is_automatic(s);
	struct tally *t = ctx;

	if (s->clone || !catalog_id_same(&s->project, t->project))
		return 0;
	t->to->snapshots++;
	/* The newest that a user took; the newest automatic one if there is none. */
	if (by_user != t->by_user ? by_user : s->created > t->to->newest_time) {
		t->by_user = by_user;
		t->to->newest_time = s->created;
		catalog_id_hex(&s->id, t->to->newest);
	}
	return 0;
}

static int count_clone(const struct clone *c, void *ctx, struct err *err)
{
	struct tally *t = ctx;

	if (!catalog_id_same(&c->project, t->project))
		return 0;
	t->to->clones++;
	t->to->mounted += live_find(t->host, c->name) != NULL;
	return 0;
}

static int overview(struct task *task, const struct engine_watch *watch,
		    struct engine_overview *ret, struct err *err)
{
	CLEANUP(engine_overview_done) struct engine_overview o = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	struct tally tally = { .host = task->host, .project = &project.id, .to = &o };
	int r = project_around(&task->engine, task->engine.store, &project, err);

	if (r < 0)
		return r;
	r = snapshot_each(task->engine.store, count_snapshot, &tally, err);
	if (r < 0)
		return r;
	r = clone_each(task->engine.store, count_clone, &tally, err);
	if (r < 0)
		return r;
	promises_project_news(task->host->promises, &project.id, &o.capturing);
	stale_tell_project(task, &project, watch, &o);
	o.path = TAKE_PTR(project.path);
	*ret = TAKE_STRUCT(o);
	return 0;
}

static void let_end(struct task *task, const char *name)
{
	CLEANUP(clone_done) struct clone c = { 0 };
	struct err ignored = { 0 };

	if (clone_get(task->engine.store, name, &c, &ignored) >= 0)
		promises_let_end(task->host->promises, &c.project);
}

int clone_status(struct task *task, const char *name, const struct engine_watch *watch,
		 struct engine_clone *ret_clone, struct engine_overview *ret_project,
		 struct err *err)
{
	CLEANUP(telling_done) struct telling t = { .task = task };
	AUTO_FREE char *here = name ? NULL : clone_here(&task->engine);
	const struct catalog_id *captured;
	int r;

	if (!name && !here)
		return overview(task, watch, ret_project, err);
	let_end(task, name ? name : here);
	r = report_clone(&t, name ? name : here, ret_clone, err);
	if (r < 0)
		return r;
	stale_tell_clone(task, &t.project, &t.base, watch, ret_clone);
	captured = captured_as(&t, &t.base);
	r = promises_lost(task->host->promises, captured, &ret_clone->lost, err);
	return r < 0 ? r
		     : promises_unread(task->host->promises, captured, &ret_clone->unread,
				       &ret_clone->stuck, err);
}
