/*
 * A history is ordered by time.  A clock that was set back must not change which snapshot is the
 * newest, so each is dated later than its parent, and a clone's snapshots later than the clone.
 *
 * A project is captured; a clone is persisted, with the snapshot's ref in the same batch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/path.h"
#include "cowfs/store/root.h"
#include "engine/act/acts-i.h"
#include "engine/act/events-i.h"
#include "engine/act/survey-i.h"
#include "engine/act/taking-i.h"
#include "engine/find/config-i.h"
#include "engine/find/moved-i.h"
#include "engine/find/part-i.h"
#include "engine/host/promises-i.h"

#define PROMISED_PART 2 /* unasked, at most this fraction of the room is promised */

static void taking_done(struct taking *t)
{
	project_done(&t->project);
	clone_done(&t->clone);
	snapshot_done(&t->parent);
	captured_done(&t->captured);
	buf_done(&t->lacks);
	free(t->part);
	free(t->owner);
	snapshot_done(&t->base);
	strlist_done(&t->left_out);
}

/* --- tags ------------------------------------------------------------------------------- */

static int put_tag(struct batch *b, const struct taking *t, struct err *err)
{
	AUTO_FREE char *full = tag_full_name(&t->project.id, t->options->tag);
	struct tag tag = { .name = full, .snapshot = t->snapshot.id };

	return full ? tag_put(b, &tag, REF_NEW, err) : err_nomem(err);
}

/* Done first, so that a taken name fails before any work. */
static int check_tag(const struct taking *t, struct err *err)
{
	AUTO_FREE char *full = tag_full_name(&t->project.id, t->options->tag);
	CLEANUP(tag_done) struct tag tag = { 0 };
	char hex[CATALOG_HEX_SIZE];
	int r;

	if (!full)
		return err_nomem(err);
	r = tag_get(t->store, full, &tag, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return err_set(err, -EEXIST, "tag '%s' is taken by snapshot %s", t->options->tag,
		       catalog_id_hex(&tag.snapshot, hex));
}

/* --- the record ------------------------------------------------------------------------- */

/* The previous snapshot; a clone's first one follows what the clone started from. */
static int find_parent(struct taking *t, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	const struct clone *clone = t->clone.name ? &t->clone : NULL;
	int r;

	if (t->is_new || t->owner)
		return 0;
	r = history_load(t->store, &t->project.id, clone, &h, err);
	return r < 0 ? engine_as_damage(err, r)
		     : history_last(t->store, &h, clone, t->part, &t->parent, err);
}

/* Fill in the snapshot, but for its tree. */
static int prepare(struct taking *t, struct err *err)
{
	struct snapshot *snap = &t->snapshot;
	int r = 0;

	t->is_new = catalog_id_is_zero(&t->project.id);
	snap->created = engine_now();
	snap->made = t->reuse ? SNAPSHOT_MADE_AUTOMATICALLY : SNAPSHOT_MADE_BY_USER;
	if (t->is_new) {
		t->project.created = snap->created;
		r = catalog_id_new(&t->project.id, err);
	}
	if (r < 0)
		return r;
	r = find_parent(t, err);
	if (r >= 0 && t->clone.name)
		r = engine_as_damage(err, snapshot_get(t->store, &t->clone.base, &t->base, err));
	if (r >= 0 && t->options->tag)
		r = check_tag(t, err);
	if (r < 0)
		return r;
	if (snap->created <= t->parent.created)
		snap->created = t->parent.created + 1;
	if (snap->created <= t->clone.created)
		snap->created = t->clone.created + 1;
	snap->parent = t->parent.id;
	snap->project = t->project.id;
	snap->clone = t->clone.name;
	snap->lacks = t->base.lacks;
	snap->part = t->base.part;
	snap->base = t->clone.base;
	r = catalog_id_new(&snap->id, err);
	if (t->part)
		snap->part = t->part;
	/* Nothing is known of what the project was beside it, so the clone begins with it. */
	if (t->owner) {
		snap->clone = t->owner;
		snap->base = snap->id;
	}
	return r;
}

/* Labels of a step of an agent: the first snapshot of each turn is its own. */
static bool parent_serves(const struct taking *t, const struct object_id *root,
			  const struct catalog_id *base)
{
	const char *meta = t->options->meta;

	return history_holds(&t->parent, root, base) &&
	       (!meta || (meta_agree(meta, t->parent.meta, "run") &&
			  meta_agree(meta, t->parent.meta, "session") &&
			  meta_agree(meta, t->parent.meta, "turn")));
}

/* What a project is known by, should it move, comes with its next snapshot. */
static int put_project(struct taking *t, struct batch *b, struct err *err)
{
	const struct project before = t->project;

	if (t->clone.name)
		return 0;
	moved_identify(&t->project);
	if (t->is_new)
		return project_put(b, &t->project, REF_NEW, err);
	if (t->project.ino == before.ino && t->project.born == before.born &&
	    t->project.fs == before.fs)
		return 0;
	return project_put(b, &t->project, REF_REPLACE, err);
}

/* Was a file promised instead of read? */
static bool is_lazy(const struct taking *t)
{
	return t->captured.promised.files > 0;
}

static int put_lazy(struct taking *t, struct batch *b, struct err *err)
{
	t->lazy.project = t->project.id;
	t->lazy.snapshot = t->snapshot.id;
	t->lazy.created = t->snapshot.created;
	t->lazy.files = t->captured.promised.files;
	t->lazy.bytes = t->captured.promised.bytes;
	t->lazy.passing = t->options->passing;
	return promises_put(b, &t->lazy, err);
}

/* Put the records, now that the root is known. */
static int put(struct taking *t, struct batch *b, struct err *err)
{
	int r = 0;

	t->is_same = t->reuse && parent_serves(t, &t->snapshot.root, &t->snapshot.base);
	if (t->is_same)
		return 0;
	r = task_wanted(t->task, err);
	if (r < 0)
		return r;
	r = put_project(t, b, err);
	if (r < 0)
		return r;
	r = snapshot_put(b, &t->snapshot, REF_NEW, err);
	if (r >= 0 && is_lazy(t))
		r = put_lazy(t, b, err);
	return r >= 0 && t->options->tag ? put_tag(b, t, err) : r;
}

/* --- of a project ----------------------------------------------------------------------- */

/* A capture that its clones alone need is lazy without having been asked to be. */
static void warn_if_refused(const struct taking *t)
{
	if (t->captured.promised.refused && t->options->lazy && !t->options->passing)
		engine_warn(
		    &t->task->engine,
		    "'%s' is on a file system that may change unseen, so --lazy has no effect: "
		    "all files were read first",
		    t->project.path);
}

/* What the store may still take, beside what is promised already. */
static uint64_t room(struct host *h)
{
	const uint64_t left = store_limit_left(h->store), promised = promises_left(h->promises);
	struct statvfs fs;
	uint64_t disk;

	if (statvfs(store_path(h->store), &fs) < 0)
		return 0;
	disk = (uint64_t)fs.f_bavail * fs.f_frsize;
	disk = disk < left ? disk : left;
	return disk > promised ? disk - promised : 0;
}

/* Files are promised from now on, if nobody objects.  By any thread of the capture. */
static bool begin_walk(void *ctx)
{
	struct taking *t = ctx;
	struct err ignored = { 0 };

	if (t->walking)
		return true; /* the walk is repeated */
	t->walk = (struct promises_walk){ .project = t->project.id, .path = t->project.path };
	t->walking = promises_may_begin(t->task->host->promises, &t->walk);
	if (!t->walking)
		return false;
	/* The cache that shows what is walked over is there first; a clone says if it cannot be. */
	IGNORE_RESULT(host_serve(t->task->host, &ignored), "it is only a cache");
	promises_linger("SNAPCOW_WALK_PAUSE");
	return true;
}

static int capture(struct taking *t, struct batch *b, struct err *err)
{
	const struct ration_options unasked = {
		.spare = t->task->host->eager,
		.most = room(t->task->host) / PROMISED_PART,
		.may_begin = begin_walk,
		.ctx = t,
	};
	const struct survey_options options = {
		.skip_unreadable = t->options->skip_unreadable,
		.part = t->part,
		.lazy = catalog_id_is_zero(&t->lazy.id) ? NULL : &t->lazy.id,
		.unasked = t->options->lazy ? NULL : &unasked,
		.lent = t->lent,
		.include = &t->options->include,
		.left_out = &t->left_out,
		.watch = t->options->watch,
	};
	int r = survey_capture(t->task, &t->project, b, &options, &t->captured, err);

	survey_tell_unread(t->task, &t->captured, r);
	if (r < 0)
		return r;
	warn_if_refused(t);
	t->snapshot.root = t->captured.root;
	t->snapshot.files = t->captured.stats.files;
	t->snapshot.bytes = t->captured.stats.bytes;
	r = part_check(t->part, t->captured.stats.dirs, t->project.path, err);
	return r < 0 ? r : survey_lacks(&t->captured, &t->lacks, &t->snapshot.lacks, err);
}

static int choose_project(struct taking *t, struct err *err)
{
	struct engine *e = &t->task->engine;

	project_done(&t->project);
	t->project = (struct project){ 0 };
	if (t->options->git)
		return project_hidden_at(e, t->store, t->options->dir, PROJECT_OF_GIT, &t->project,
					 err);
	return project_choose(e, t->store, t->options->dir, &t->project, err);
}

/* No project yet, but the directory of one that moved: its history goes on. */
static int adopt_moved(struct taking *t, struct err *err)
{
	CLEANUP(moved_done) struct moved m = { 0 };
	struct engine *e = &t->task->engine;
	char hex[CATALOG_HEX_SIZE];
	int r;

	if (!catalog_id_is_zero(&t->project.id) || t->options->git)
		return 0;
	r = moved_find(t->store, t->project.path, t->project.path, &m, err);
	if (r <= 0)
		return r;
	if (!m.certain) {
		engine_warn(e,
			    "project '%s' is gone, and '%s' becomes another one; if it is the "
			    "same: 'projects forget' the new one, then 'projects mv' the old one",
			    m.from, m.to);
		return 0;
	}
	r = project_move(t->task, catalog_id_hex(&m.id, hex), m.to, false, err);
	if (r < 0)
		return r;
	engine_warn(e, "project '%s' moved to '%s': its snapshots and clones came along", m.from,
		    m.to);
	return choose_project(t, err);
}

static int capture_and_put(struct taking *t, struct batch *b, struct err *err)
{
	enum batch_durability d = BATCH_DURABLE;
	int r = capture(t, b, err);

	if (r >= 0 && is_lazy(t))
		promises_linger("SNAPCOW_WALKED_PAUSE");
	/* What is for its clones alone is as durable as they are: their first fsync brings it along. */
	if (is_lazy(t) && t->options->passing)
		d = BATCH_SAFE;
	r = r < 0 ? r : put(t, b, err);
	return r >= 0 && !t->is_same ? batch_commit(b, d, err) : r;
}

/* May it promise files although nobody asked for that?  One capture of a project is enough. */
static bool may_be_lazy(const struct taking *t)
{
	struct promises *p = t->task->host->promises;

	return t->options->unasked && t->task->host->eager != CONFIG_EAGER_ALL &&
	       promises_have_room(p) && !promises_open(p, &t->project.id);
}

/* Without reading files, if that is wanted and nobody objects. */
static int capture_and_commit(struct taking *t, struct batch *b, struct err *err)
{
	struct promises *p = t->task->host->promises;
	int r = 0;

	if (t->options->git)
		return capture_and_put(t, b, err);
	if (t->options->lazy ? begin_walk(t) : may_be_lazy(t))
		r = catalog_id_new(&t->lazy.id, err);
	r = r < 0 ? r : capture_and_put(t, b, err);
	if (t->walking && r >= 0 && is_lazy(t) && !t->is_same)
		promises_begin(p, &t->walk, &t->lazy, TAKE_PTR(t->captured.signatures),
			       !t->options->lazy);
	else if (t->walking)
		promises_give_up(p, &t->walk);
	return r;
}

static int find_part(struct taking *t, struct err *err)
{
	const struct engine_take_options *o = t->options;

	if (!o->part)
		return 0;
	t->owner = o->owner ? strdup(o->owner) : NULL;
	if (o->owner && !t->owner)
		return err_nomem(err);
	return part_resolve(&t->task->engine, t->project.path, o->part, &t->part, err);
}

/* In the project's turn. */
static int take_now(struct taking *t, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = find_part(t, err);

	r = r < 0 ? r : prepare(t, err);
	r = r < 0 ? r : batch_begin(t->store, &b, err);
	if (r < 0)
		return r;
	r = t->lent ? capture_and_put(t, b, err) : capture_and_commit(t, b, err);
	if (r < 0)
		return r;
	/* Those of promises are written when these are kept. */
	if (!is_lazy(t))
		survey_keep(t->task, &t->project, &t->captured);
	if (t->is_new && !t->options->dir)
		taken_warn_of_choice(t);
	return r;
}

/*
 * What the capture of the project that is under way has seen is not read once more: what did not change since
 * is promised by that.
 */
static int take_beside(struct taking *t, struct err *err)
{
	struct promises *p = t->task->host->promises;
	int r;

	t->early = t->options->unasked && !t->options->lazy && !t->options->part &&
		   !promises_lend(p, &t->project.id, &t->lent);
	if (t->early)
		return 0;
	r = take_now(t, err);
	if (t->lent)
		promises_return(p, t->lent, r >= 0 && !t->is_same ? &t->snapshot.id : NULL);
	return r;
}

static int take_in_turn(struct taking *t, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	int r = turns_take(&t->task->host->turns, t->project.path, &turn, err);

	if (r < 0)
		return r;
	/* The task that had the turn before may have registered it. */
	r = catalog_id_is_zero(&t->project.id) ? choose_project(t, err)
					       : project_still(t->store, &t->project, err);
	return r < 0 ? r : take_beside(t, err);
}

static int take_project(struct taking *t, struct err *err)
{
	struct promises *p = t->task->host->promises;
	int r = 0;

	if (t->options->lazy)
		r = promises_await_room(p, t->task, &t->options->watch, err);
	r = r < 0 ? r : choose_project(t, err);
	if (r < 0)
		return r;
	r = adopt_moved(t, err);
	r = r < 0 ? r : take_in_turn(t, err);
	while (r >= 0 && t->early) {
		r = promises_await_closing(p, t->task, &t->project.id, &t->options->watch, err);
		r = r < 0 ? r : take_in_turn(t, err);
	}
	return r;
}

/* --- of a clone ------------------------------------------------------------------------- */

static int put_state(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct taking *t = ctx;

	t->snapshot.root = state->id;
	t->snapshot.files = state->files;
	t->snapshot.bytes = state->bytes;
	return put(t, b, err);
}

/* The clone is not mounted, so the store has all of it. */
static int take_stored(struct taking *t, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct layer_state state = { .id = t->clone.root };
	struct root root;
	int r = root_get(t->store, &t->clone.root, &root, err);

	if (r < 0)
		return err_wrap(err, r, "clone '%s'", t->clone.name);
	state.files = root.top.below.files;
	state.bytes = root.top.below.bytes + root.in_links.bytes;
	r = batch_begin(t->store, &b, err);
	if (r < 0)
		return r;
	r = put_state(b, &state, t, err);
	return r >= 0 && !t->is_same ? batch_commit(b, BATCH_DURABLE, err) : r;
}

/* Must be asked before the record is read: then the record's root has everything written so far. */
static bool is_idle(const struct live *live)
{
	struct layer_usage usage;

	layer_usage(live->layer, &usage);
	return !usage.changed;
}

/* 1 if it names promises, perhaps: then it is to be tried again, with all captures at an end. */
static int take_clone_now(struct taking *t, bool settled, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct host *h = t->task->host;
	struct layer_state state;
	struct live *live;
	bool idle;
	int r = turns_take(&h->turns, t->options->clone, &turn, err);

	if (r < 0)
		return r;
	live = live_find(h, t->options->clone);
	idle = live && t->reuse && is_idle(live);
	r = clone_find(t->store, t->options->clone, &t->clone, err);
	if (r < 0)
		return r;
	r = engine_as_damage(err, project_get(t->store, &t->clone.project, &t->project, err));
	if (r < 0)
		return r;
	r = prepare(t, err);
	if (r < 0)
		return r;
	/* Nothing to write, so no need to wait for the disk. */
	if (idle && parent_serves(t, &t->clone.root, &t->clone.base)) {
		t->is_same = true;
		return 0;
	}
	if (!settled && !t->options->lazy && !t->options->unasked &&
	    promises_open(h->promises, &t->clone.project))
		return 1;
	if (!live)
		return take_stored(t, err);
	r = layer_persist(live->layer, BATCH_DURABLE, put_state, t, &state, err);
	return r < 0 ? err_wrap(err, r, "clone '%s'", t->clone.name) : 0;
}

static int take_clone(struct taking *t, struct err *err)
{
	struct promises *p = t->task->host->promises;
	struct promises_scope scope = { .n = 1 };
	int r = take_clone_now(t, false, err);

	if (r <= 0)
		return r;
	scope.projects[0] = t->project.id;
	project_done(&t->project);
	clone_done(&t->clone);
	snapshot_done(&t->parent);
	snapshot_done(&t->base);
	t->project = (struct project){ 0 };
	t->clone = (struct clone){ 0 };
	t->parent = (struct snapshot){ 0 };
	t->base = (struct snapshot){ 0 };
	r = promises_enter(p, t->task, &scope, &t->options->watch, err);
	if (r < 0)
		return r;
	r = take_clone_now(t, true, err);
	promises_leave(p);
	return r;
}

/* Whose promises a clone's snapshot names is not noted: those of captures of its project. */
static void find_capturing(const struct taking *t, struct engine_capturing *ret)
{
	struct promises *p = t->task->host->promises;

	if (!t->options->clone)
		promises_news(p, &t->snapshot.id, ret);
	else if (t->options->lazy)
		promises_project_news(p, &t->project.id, ret);
}

/* --- either ----------------------------------------------------------------------------- */

int take_snapshot(struct task *task, const struct engine_take_options *options, bool reuse,
		  struct engine_taken *ret, struct err *err)
{
	AUTO_FREE char *message = strdup(options->message ? options->message : "");
	AUTO_FREE char *meta = options->meta ? strdup(options->meta) : NULL;
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(taking_done) struct taking t = { .task = task,
						 .options = options,
						 .reuse = reuse || options->automatic,
						 .snapshot.message = message,
						 .snapshot.meta = meta };
	uint64_t start = engine_clock_ms();
	int r;

	if (!message || (options->meta && !meta))
		return err_nomem(err);
	r = meta_check(meta, err);
	if (r < 0)
		return r;
	r = options->tag ? tag_check_name(options->tag, err) : 0;
	if (r >= 0 && options->part && options->clone)
		r = err_set(err, -EINVAL, "a part is taken of a project, not of a clone");
	if (r < 0)
		return r;
	r = engine_store(&task->engine, STORE_WRITE, &t.store, err);
	if (r < 0)
		return r;
	r = options->clone ? take_clone(&t, err) : take_project(&t, err);
	if (r < 0)
		return r;
	r = taken_describe(&t, &taken, err);
	if (r < 0)
		return r;
	taken_compare(&t, &taken);
	/* A clone prepares the next one of the same state itself. */
	if (!options->clone && !options->part && !t.reuse && !is_lazy(&t) && !t.lent)
		warm_clone_renew(task->host->warm_clone, &t.snapshot);
	if (!t.is_same && !options->git && !t.owner)
		event_taken(task, &taken);
	find_capturing(&t, &taken.capturing);
	taken.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(taken);
	return 0;
}
