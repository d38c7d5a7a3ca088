#include "engine/act/stale-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/act/hold-i.h"
#include "engine/find/gitdir-i.h"
#include "engine/find/part-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"

/* All names that changed between two roots. */
struct names {
	struct engine_paths paths;
	size_t cap;
	struct changes counts;
	struct store *store;
	const struct object_id *from,
	    *to;          /* if set, files `.git` do not count (gitdir_is_link()) */
	const char *part; /* what lies outside does not count; NULL: all does */
};

static void names_done(struct names *n)
{
	engine_paths_done(&n->paths);
}

static int add_name(const char *path, char status, void *ctx, struct err *err)
{
	struct names *n = ctx;

	if (!part_has(n->part, path))
		return 0;
	if (n->from && gitdir_is_link(n->store, n->from, n->to, path) > 0)
		return 0;
	n->counts.added += status == 'A';
	n->counts.modified += status == 'M';
	n->counts.deleted += status == 'D';
	if (!VEC_ROOM(n->paths.list, n->paths.n, n->cap))
		return err_nomem(err);
	n->paths.list[n->paths.n] = (struct engine_path){ .path = strdup(path), .status = status };
	return n->paths.list[n->paths.n++].path ? 0 : err_nomem(err);
}

static int by_path(const void *a, const void *b)
{
	const struct engine_path *x = a, *y = b;
	const int order = strcmp(x->path, y->path);

	return order != 0 ? order : (y->status == 'D') - (x->status == 'D');
}

/* One that was lost, or that nobody knows of, equals itself alone. */
static int keep(const struct object_id *promise, struct content *ret, void *ctx, struct err *err)
{
	int r = promises_keep(promise, ret, ctx, err);

	return r == -EIO || r == -ESTALE ? 0 : r < 0 ? r : 1;
}

static int find_names(struct task *task, const struct object_id *from, const struct object_id *to,
		      struct names *n, struct err *err)
{
	int r = object_id_equal(from, to)
		    ? 0
		    : changes_each_kept(task->engine.store, from, to, keep, task->host->promises,
					add_name, n, err);

	if (r < 0)
		return r;
	VEC_SORT(n->paths.list, n->paths.n, by_path);
	return r;
}

/* The list of names is bounded, the counts are not. */
static struct engine_paths take_paths(struct names *n)
{
	struct engine_paths *p = &n->paths, taken;

	for (; p->n > ENGINE_PATHS_MAX; p->truncated = true)
		free(p->list[--p->n].path);
	taken = *p;
	*p = (struct engine_paths){ 0 };
	return taken;
}

int stale_compare(struct task *task, const struct object_id *from, const struct object_id *to,
		  struct engine_paths *ret, struct changes *ret_counts, struct err *err)
{
	CLEANUP(names_done) struct names n = { 0 };
	int r = find_names(task, from, to, &n, err);

	if (r < 0)
		return r;
	*ret_counts = n.counts;
	*ret = take_paths(&n);
	return 0;
}

int stale_count(struct task *task, const struct object_id *from, const struct object_id *to,
		struct changes *ret, struct err *err)
{
	return changes_count_kept(task->engine.store, from, to, keep, task->host->promises, ret,
				  err);
}

/* Both are sorted.  A name that is twice in one, because its kind changed, counts once. */
static uint64_t mark_both(struct names *a, struct names *b)
{
	uint64_t n = 0;

	for (size_t i = 0, j = 0; i < a->paths.n && j < b->paths.n;) {
		struct engine_path *x = &a->paths.list[i], *y = &b->paths.list[j];
		const int order = strcmp(x->path, y->path);

		if (order == 0) {
			n += !y->both;
			x->both = y->both = true;
		}
		i += order <= 0;
		j += order > 0;
	}
	for (size_t i = 1; i < b->paths.n; i++)
		if (strcmp(b->paths.list[i].path, b->paths.list[i - 1].path) == 0)
			b->paths.list[i].both = b->paths.list[i - 1].both;
	return n;
}

/* --- clones ----------------------------------------------------------------------------- */

/* A lazy capture that has ended since the snapshot was read gave it another root. */
static int reread(struct task *task, const struct snapshot *s, struct object_id *ret,
		  struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot now = { 0 };
	int r = engine_as_damage(err, snapshot_get(task->engine.store, &s->id, &now, err));

	if (r >= 0)
		*ret = now.root;
	return r;
}

static int compare_clone(struct task *task, const struct snapshot *base, struct engine_clone *c,
			 struct names *n, struct err *err)
{
	struct promises_stay stay = { .project = base->project };
	struct object_id root;
	struct held held;
	int r;

	/* No lazy capture of it ends meanwhile. */
	promises_stay(task->host->promises, &stay);
	r = reread(task, base, &root, err);
	r = r < 0 ? r : hold_clone(task, c->name, &held, err);
	r = r < 0 ? r : find_names(task, &root, &held.root, n, err);
	promises_go(task->host->promises, &stay);
	if (r < 0)
		return r;
	c->compared = true;
	c->added = n->counts.added;
	c->modified = n->counts.modified;
	c->deleted = n->counts.deleted;
	return 0;
}

static int compare_project(struct task *task, const struct project *project,
			   const struct snapshot *base, const struct engine_watch *watch,
			   struct engine_stale *stale, struct names *n, struct err *err)
{
	struct object_id root;
	struct held held;
	int r = hold_project(task, project, watch, &held, err);

	r = r < 0 ? r : reread(task, base, &root, err);
	if (r < 0)
		return r;
	n->store = task->engine.store;
	n->from = base->clone ? &root : NULL;
	n->to = &held.root;
	n->part = base->part;
	r = find_names(task, &root, &held.root, n, err);
	n->from = n->to = NULL;
	if (r < 0)
		return r;
	stale->known = true;
	stale->as_of = held.time;
	stale->paths = n->counts.added + n->counts.modified + n->counts.deleted;
	if (stale->paths > 0 && held.time > base->created)
		stale->behind_ms = (uint64_t)(held.time - base->created) / 1000000;
	return 0;
}

void stale_tell_clone(struct task *task, const struct project *project, const struct snapshot *base,
		      const struct engine_watch *watch, struct engine_clone *c)
{
	CLEANUP(names_done) struct names here = { 0 }, there = { 0 };
	struct err err = { 0 };

	if (compare_clone(task, base, c, &here, &err) < 0)
		engine_warn(&task->engine, "clone '%s': %s, continuing", c->name, err.msg);
	err = (struct err){ 0 };
	c->stale = (struct engine_stale){ 0 };
	if (project->hidden == PROJECT_IMAGE || promises_open(task->host->promises, &project->id))
		; /* it never changes, or nothing is compared with it until it is captured */
	else if (compare_project(task, project, base, watch, &c->stale, &there, &err) < 0)
		engine_warn(&task->engine,
			    "comparing with the project as it is now: %s, continuing", err.msg);
	else
		c->stale.both = mark_both(&there, &here);
	c->changed = take_paths(&here);
	c->stale.in_project = take_paths(&there);
}

/* --- projects --------------------------------------------------------------------------- */

static int compare_with_newest(struct task *task, const struct project *project,
			       const struct engine_watch *watch, struct engine_overview *o,
			       struct names *n, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot newest = { 0 };
	struct held held;
	int r = engine_as_damage(err, snapshot_find(task->engine.store, o->newest, &newest, err));

	if (r < 0)
		return r;
	r = hold_project(task, project, watch, &held, err);
	return r < 0 ? r : find_names(task, &newest.root, &held.root, n, err);
}

void stale_tell_project(struct task *task, const struct project *project,
			const struct engine_watch *watch, struct engine_overview *o)
{
	CLEANUP(names_done) struct names n = { 0 };
	struct err err = { 0 };

	if (*o->newest == '\0' || promises_open(task->host->promises, &project->id))
		return;
	if (compare_with_newest(task, project, watch, o, &n, &err) < 0) {
		engine_warn(&task->engine, "comparing with the newest snapshot: %s, continuing",
			    err.msg);
		return;
	}
	o->compared = true;
	o->added = n.counts.added;
	o->modified = n.counts.modified;
	o->deleted = n.counts.deleted;
	o->changed = take_paths(&n);
}
