#include "engine/act/stage-i.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/act/acts-i.h"
#include "engine/act/events-i.h"
#include "engine/act/hold-i.h"
#include "engine/act/stale-i.h"
#include "engine/act/unneeded-i.h"
#include "engine/find/run-record.h"
#include "engine/host/host-i.h"
#include "engine/host/keep-i.h"
#include "engine/host/promises-i.h"

struct staged {
	struct kept kept;
	struct host *host;
	char *name; /* owned; NULL: it is gone */
	char run[STAGE_RUN_SIZE];
	struct catalog_id project;     /* the clone's */
	struct object_id before;       /* the clone's root when the run began */
	char snapshot[ENGINE_ID_SIZE]; /* that has this root, now or when it is settled; "": none */
	uint64_t ceiling;              /* 0: the run has none */
	uint64_t inodes;               /* the same for inodes */
	uint64_t refused, nodes_refused; /* what the layer had refused when the run began */
	bool made, remove;
	bool passing;        /* the clone goes in any case, and nobody reads it after the run */
	bool ended;          /* the run told us */
	bool waits;          /* for the user's decision; stage_end() does not remove it */
	bool masks;          /* it hides files of the clone by mounts over them */
	struct staged *next; /* guarded by host->lock */
};

/* --- what the run may do with it ---------------------------------------------------------- */

/*
 * Runs in the same clone share its limits: the highest ceiling counts, and there is none if one of
 * the runs has none.  It is passing if it is to all of them.  The caller has the clone's turn.
 */
static void set_terms(struct host *h, const char *name, struct layer *l)
{
	uint64_t most = 0, most_inodes = 0;
	bool bounded = true, bounded_inodes = true, passing = true, any = false;

	pthread_mutex_lock(&h->lock);
	for (struct staged *s = h->staged; s; s = s->next) {
		if (!s->name || strcmp(s->name, name) != 0)
			continue;
		any = true;
		passing &= s->passing;
		bounded &= s->ceiling > 0;
		bounded_inodes &= s->inodes > 0;
		most = s->ceiling > most ? s->ceiling : most;
		most_inodes = s->inodes > most_inodes ? s->inodes : most_inodes;
	}
	pthread_mutex_unlock(&h->lock);
	layer_set_ceiling(l, bounded ? most : 0);
	layer_set_nodes_ceiling(l, bounded_inodes ? most_inodes : 0);
	layer_set_passing(l, any && passing);
}

struct masking {
	struct host *host;
	const char *clone;
};

/* Does another run of the clone hide files by mounts?  host->lock held */
static bool others_mask(const char *run, const void *ctx)
{
	const struct masking *m = ctx;

	for (const struct staged *s = m->host->staged; s; s = s->next)
		if (s->masks && s->name && strcmp(s->name, m->clone) == 0 &&
		    strcmp(s->run, run) != 0)
			return true;
	return false;
}

/* No run moves a directory out from under the masks of another.  The caller has the clone's turn. */
static void keep_dirs(struct host *h, const char *name, struct live *live)
{
	const struct masking m = { h, name };

	LOCKED(&h->lock);
	live_view_keep_dirs(live, others_mask, &m);
}

static void link_staged(struct staged *s)
{
	LOCKED(&s->host->lock);
	s->next = s->host->staged;
	s->host->staged = s;
}

static void unlink_staged(struct staged *s)
{
	struct staged **at = &s->host->staged;

	LOCKED(&s->host->lock);
	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
}

/* The total that a limit on growth allows. */
static uint64_t over(uint64_t there, uint64_t limit)
{
	return limit > 0 && limit < UINT64_MAX - there ? there + limit : 0;
}

/* The clone as it is mounted, and the turn that keeps it so. */
static int take_live(const struct staged *s, struct turn **ret_turn, struct live **ret,
		     struct err *err)
{
	int r = turns_take(&s->host->turns, s->name, ret_turn, err);

	if (r < 0)
		return r;
	*ret = live_find(s->host, s->name);
	return *ret ? 0 : err_set(err, -EAGAIN, "clone '%s' was unmounted just now", s->name);
}

static int bound(struct staged *s, const struct stage_options *o, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct layer_usage usage;
	struct live *live;
	int r = take_live(s, &turn, &live, err);

	if (r < 0)
		return r;
	layer_usage(live->layer, &usage);
	s->refused = usage.refused;
	s->nodes_refused = usage.nodes_refused;
	s->ceiling = over(usage.charged, o->disk);
	s->inodes = over(usage.inodes, o->inodes);
	s->passing = s->made && s->remove && !s->waits && o->passing;
	s->masks = o->masks;
	link_staged(s);
	set_terms(s->host, s->name, live->layer);
	keep_dirs(s->host, s->name, live);
	return 0;
}

static void unbound(struct staged *s)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct live *live;

	unlink_staged(s);
	if (!s->name || turns_take(&s->host->turns, s->name, &turn, NULL) < 0)
		return;
	live = live_find(s->host, s->name);
	if (!live)
		return;
	set_terms(s->host, s->name, live->layer);
	live_view_close(live, s->run);
	keep_dirs(s->host, s->name, live);
}

/* Where the run sees the clone, if not at its mount. */
static int show(struct staged *s, const struct stage_options *o, char **ret, struct err *err)
{
	const struct mount_shift shift = { .first = o->first_id, .n = o->ids };
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct live *live;
	const char *path;
	int r = take_live(s, &turn, &live, err);

	if (r < 0)
		return r;
	r = live_view_open(live, s->run, &shift, &path, err);
	if (r < 0 || !path)
		return r;
	keep_dirs(s->host, s->name, live);
	*ret = strdup(path);
	return *ret ? 0 : err_nomem(err);
}

static void release(struct kept *k);

static struct staged *staged_last(struct task *task)
{
	for (struct kept *k = *task->kept; k; k = k->next)
		if (k->release == release)
			return (struct staged *)k;
	return NULL;
}

int stage_root(struct task *task, int fd, const struct stage_root *how, struct err *err)
{
	AUTO_CLOSE int own = fd;
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	const struct staged *s = staged_last(task);
	struct live *live;
	int r;

	if (!s || !s->name)
		return err_set(err, -ENOENT, "nothing is staged");
	r = take_live(s, &turn, &live, err);
	r = r < 0 ? r : live_view_serve(live, s->run, TAKE_FD(own), how, err);
	if (r >= 0)
		keep_dirs(s->host, s->name, live);
	return r;
}

/* --- ending ----------------------------------------------------------------------------- */

/* A clone made for the run has no other user, so it is removed by force. */
static int take_away(struct staged *s, struct err *err)
{
	struct task task = task_of(s->host);
	struct engine_removed removed;
	int r = clone_remove(&task, s->name, s->made, &removed, err);

	if (r >= 0 || r == -ENOENT) {
		free(s->name);
		s->name = NULL;
		return 0;
	}
	return r;
}

static void staged_free(struct staged *s)
{
	if (!s)
		return;
	free(s->name);
	free(s);
}
DEFINE_CLEANUP(struct staged *, staged_free)

/* The connection ended, after stage_end() or without it. */
static void release(struct kept *k)
{
	struct staged *s = (struct staged *)k;
	const struct task task = task_of(s->host);
	struct err err = { 0 };

	unbound(s);
	if (!s->ended)
		event_run_lost(&task, s->run);
	if (s->name && s->remove && take_away(s, &err) < 0)
		log_warn("removing the clone of a run: %s, continuing", err.msg);
	staged_free(s);
}

static void ran_full(const struct staged *s, struct stage_end *ret)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct layer_usage usage;
	struct live *live;

	if (turns_take(&s->host->turns, s->name, &turn, NULL) < 0)
		return;
	live = live_find(s->host, s->name);
	if (!live)
		return;
	layer_usage(live->layer, &usage);
	ret->full = usage.refused > s->refused;
	ret->no_inodes = usage.nodes_refused > s->nodes_refused;
}

static int find_root(struct task *task, const char *id, struct object_id *ret, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	int r = engine_as_damage(err, snapshot_find(task->engine.store, id, &s, err));

	if (r < 0)
		return r;
	*ret = s.root;
	return r;
}

static void compare(struct task *task, struct staged *s, struct stage_end *ret)
{
	struct promises_stay stay = { .project = s->project };
	struct changes counts = { 0 };
	struct err err = { 0 };
	struct object_id settled;
	struct held now;
	int r;

	/* No lazy capture of it ends meanwhile; one that has ended gave the snapshot another root. */
	promises_stay(s->host->promises, &stay);
	if (s->snapshot[0] && find_root(task, s->snapshot, &settled, &err) >= 0)
		s->before = settled;
	r = hold_clone(task, s->name, &now, &err);
	r = r < 0 ? r : stale_compare(task, &s->before, &now.root, &ret->changed, &counts, &err);
	promises_go(s->host->promises, &stay);
	if (r < 0) {
		engine_warn(&task->engine,
			    "comparing clone '%s' with what it was before the run: %s, continuing",
			    s->name, err.msg);
		return;
	}
	ret->compared = true;
	ret->added = counts.added;
	ret->modified = counts.modified;
	ret->deleted = counts.deleted;
}

/* What the user is shown before deciding must still be there afterwards, even if we die. */
static int persist(const struct staged *s, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct layer_state state;
	struct live *live;
	int r = turns_take(&s->host->turns, s->name, &turn, err);

	if (r < 0)
		return r;
	live = live_find(s->host, s->name);
	return live ? layer_persist(live->layer, BATCH_SAFE, NULL, NULL, &state, err) : 0;
}

int stage_end(struct task *task, struct stage_end *ret, struct err *err)
{
	struct staged *s = staged_last(task);
	struct err why = { 0 };

	*ret = (struct stage_end){ 0 };
	if (!s || !s->name)
		return err_set(err, -ENOENT, "nothing is staged");
	s->ended = true;
	ran_full(s, ret);
	compare(task, s, ret);
	unbound(s);
	if (s->waits)
		return persist(s, err);
	if (s->remove && take_away(s, &why) < 0)
		engine_warn(&task->engine, "%s, so it stays", why.msg);
	ret->removed = !s->name;
	s->remove = false;
	return 0;
}

/* The clone had an expiry in case nobody was left to remove it. */
int stage_stay(struct task *task, const char *clone, struct err *err)
{
	struct host *h = task->host;
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(clone_done) struct clone c = { 0 };
	struct layer_state state;
	struct live *live;
	int r = turns_take(&h->turns, clone, &turn, err);

	if (r < 0)
		return r;
	r = clone_find(h->store, clone, &c, err);
	if (r < 0)
		return r;
	live = live_find(h, clone);
	if (live) {
		layer_set_expiry(live->layer, 0);
		layer_leave_run(live->layer);
		return layer_persist(live->layer, BATCH_DURABLE, NULL, NULL, &state, err);
	}
	c.expires = 0;
	c.run = 0;
	r = batch_begin(h->store, &b, err);
	if (r < 0)
		return r;
	r = clone_put(b, &c, REF_REPLACE, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

int stage_settle(struct task *task, bool keep, struct err *err)
{
	struct staged *s = staged_last(task);
	int r;

	if (!s || !s->name || !s->waits)
		return err_set(err, -ENOENT, "no clone waits for a decision");
	r = keep ? stage_stay(task, s->name, err) : take_away(s, err);
	if (r < 0)
		return r;
	s->waits = s->remove = false;
	return r;
}

/* --- beginning -------------------------------------------------------------------------- */

/* The directory that is to be the run's root, or beside it, as it is now; files are read as they are needed. */
static int take_root(struct task *task, const struct stage_options *o, struct engine_taken *ret,
		     struct err *err)
{
	const struct engine_take_options options = {
		.dir = o->root,
		.message = o->beside ? "project of a run" : "root of a run",
		.automatic = true,
		.skip_unreadable = true,
		.lazy = true, /* nobody waits until a whole machine is read */
		.passing = true,
		.watch = o->watch,
	};

	return o->root ? take_snapshot(task, &options, true, ret, err) : 0;
}

static void drop_root(struct task *task, const struct engine_taken *taken)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct err ignored = { 0 };

	if (snapshot_find(task->engine.store, taken->snapshot.id, &s, &ignored) >= 0)
		unneeded_end(task->host, &s.id);
}

static int stage_new(struct task *task, const struct stage_options *o, struct staged *s,
		     struct stage *ret, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	CLEANUP(clone_done) struct clone record = { 0 };
	char name[sizeof(STAGE_NAME STAGE_BESIDE) + STAGE_RUN_SIZE], made_for[8 + STAGE_RUN_SIZE];
	const struct engine_clone_options options = {
		.name = o->keep || o->wait ? NULL : name,
		.from = o->root ? taken.snapshot.id : o->from,
		.lazy = o->lazy,
		.eager = o->eager,
		.skip_unreadable = o->skip_unreadable,
		.part = o->part,
		.via = o->via ? o->via : made_for,
		.ttl_ms = o->ttl_ms,
		.strict = o->strict,
		.run = o->keep ? 0 : run_record_number(o->run),
		.watch = o->watch,
	};
	struct engine_clone *c;
	int r;

	snprintf(name, sizeof(name), STAGE_NAME "%s%s", o->run, o->beside ? STAGE_BESIDE : "");
	snprintf(made_for, sizeof(made_for), "run:%s", o->run);
	r = take_root(task, o, &taken, err);
	if (r < 0)
		return r;
	r = clone_make(task, &options, &clones, err);
	if (r < 0 && o->root)
		drop_root(task, &taken);
	if (r < 0)
		return r;
	c = &clones.list[0];
	r = clone_find(task->engine.store, c->name, &record, err);
	if (r < 0)
		return r;
	catalog_id_hex(clone_start(&record), ret->before);
	ret->clone = TAKE_PTR(c->name);
	ret->path = TAKE_PTR(c->path);
	ret->project = TAKE_PTR(c->project);
	ret->unread = engine_capturing_left(&c->capturing);
	s->project = record.project;
	s->made = true;
	s->remove = !o->keep;
	s->waits = o->wait;
	memcpy(s->snapshot, ret->before, sizeof(s->snapshot));
	return find_root(task, ret->before, &s->before, err);
}

static int stage_named(struct task *task, const struct stage_options *o, struct staged *s,
		       struct stage *ret, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(clone_done) struct clone clone = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	char message[64];
	const struct engine_take_options options = { .clone = o->clone,
						     .message = message,
						     .lazy = true };
	struct held held = { 0 };
	int r;

	snprintf(message, sizeof(message), "before run %s", o->run);
	r = clone_find(task->engine.store, o->clone, &clone, err);
	if (r < 0)
		return r;
	if (clone.private)
		return err_set(
		    err, -EPERM,
		    "clone '%s' is private: only root may enter it, and what runs in a sandbox is not root",
		    o->clone);
	r = clone_mount(task, o->clone, &ret->path, err);
	if (r < 0)
		return r;
	r = engine_as_damage(err, project_get(task->engine.store, &clone.project, &project, err));
	if (r < 0)
		return r;
	r = o->no_snapshot ? hold_clone(task, o->clone, &held, err)
			   : take_snapshot(task, &options, true, &taken, err);
	if (r < 0)
		return r;
	s->project = clone.project;
	s->before = held.root;
	s->remove = o->remove;
	memcpy(ret->before, taken.snapshot.id, sizeof(ret->before));
	memcpy(s->snapshot, taken.snapshot.id, sizeof(s->snapshot));
	ret->clone = strdup(o->clone);
	ret->project = TAKE_PTR(project.path);
	if (!ret->clone)
		return err_nomem(err);
	return o->no_snapshot ? 0 : find_root(task, ret->before, &s->before, err);
}

static int find_project(struct task *task, const char *name, char id[ENGINE_ID_SIZE],
			struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	int r = clone_find(task->engine.store, name, &clone, err);

	if (r >= 0)
		catalog_id_hex(&clone.project, id);
	return r;
}

int stage_begin(struct task *task, const struct stage_options *o, struct stage *ret,
		struct err *err)
{
	CLEANUP(staged_free_p) struct staged *s = calloc(1, sizeof(*s));
	CLEANUP(stage_done) struct stage stage = { 0 };
	struct staged *kept;
	int r;

	if (!s)
		return err_nomem(err);
	/* A run that is lost is reported once, with its root. */
	*s = (struct staged){ .kept.release = release, .host = task->host, .ended = o->beside };
	snprintf(s->run, sizeof(s->run), "%s", o->run);
	r = o->clone ? stage_named(task, o, s, &stage, err) : stage_new(task, o, s, &stage, err);
	if (stage.clone)
		s->name = strdup(stage.clone);
	if (!s->name)
		return r < 0 ? r : err_nomem(err);
	/* From here on it ends with the connection, even if what follows fails. */
	kept = TAKE_PTR(s);
	keep_add(task->kept, &kept->kept);
	r = r < 0 ? r : find_project(task, kept->name, stage.project_id, err);
	r = r < 0 ? r : bound(kept, o, err);
	r = r < 0 ? r : show(kept, o, &stage.view, err);
	if (r < 0) {
		kept->remove &= kept->made;
		return r;
	}
	*ret = TAKE_STRUCT(stage);
	return 0;
}

/* --- what a dead daemon left ------------------------------------------------------------ */

struct sweeping {
	struct host *host;
	char names[64][CLONE_NAME_MAX + 1]; /* the others expire */
	size_t n;
};

/* Has the clone's run died, and the process that decides on it, too? */
static bool is_left(const struct host *h, const struct clone *c)
{
	char id[STAGE_RUN_SIZE];

	if (c->run == 0)
		return false;
	run_record_id(c->run, id);
	return !run_record_is_live(h->dir, id);
}

static int collect_left(const struct clone *c, void *ctx, struct err *err)
{
	struct sweeping *s = ctx;

	if (s->n < ARRAY_LEN(s->names) && is_left(s->host, c))
		snprintf(s->names[s->n++], sizeof(s->names[0]), "%s", c->name);
	return 0;
}

void stage_sweep(struct host *h)
{
	AUTO_FREE struct sweeping *s = calloc(1, sizeof(*s));
	struct err err = { 0 };

	if (!s)
		return;
	s->host = h;
	if (clone_each(h->store, collect_left, s, &err) < 0)
		log_warn("looking for clones of runs that died: %s, continuing", err.msg);
	for (size_t i = 0; i < s->n; i++) {
		struct task task = task_of(h);
		struct engine_removed removed;

		if (clone_remove(&task, s->names[i], true, &removed, &err) < 0)
			log_warn("%s, continuing", err.msg);
		else
			log_info("clone '%s' of a run that died is removed", s->names[i]);
	}
}
