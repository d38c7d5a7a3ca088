#include "engine/api/clone.h"
#include "engine/act/events-i.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/act/acts-i.h"
#include "engine/act/clone-git-i.h"
#include "engine/act/hide-i.h"
#include "engine/act/maker-i.h"
#include "engine/act/strays-i.h"
#include "engine/act/unneeded-i.h"
#include "engine/find/descent-i.h"
#include "engine/find/part-i.h"
#include "engine/host/host-i.h"
#include "engine/host/promises-i.h"

/* --- what it starts from ---------------------------------------------------------------- */

/* Take a snapshot of the clone or, if NULL, of the project, as it is now. */
static int base_now(struct task *task, const char *clone, const struct engine_clone_options *of,
		    struct engine_clones *made, struct snapshot *ret, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	AUTO_FREE char *here = clone ? NULL : clone_here(&task->engine);
	struct engine_take_options options = {
		.clone = clone,
		.skip_unreadable = of->skip_unreadable,
		.lazy = of->lazy,
		.unasked = !of->eager,
		.part = of->part,
		.owner = made->n > 0 ? made->list[0].name : NULL,
		.watch = of->watch,
	};
	int r;

	/* In a clone, the current directory is not the project's. */
	if (here) {
		r = project_around(&task->engine, task->engine.store, &project, err);
		if (r < 0)
			return r;
		options.dir = project.path;
	}
	r = take_snapshot(task, &options, true, &taken, err);
	if (r < 0)
		return r;
	made->strays = TAKE_PTR(taken.strays);
	made->n_strays = taken.n_strays;
	taken.n_strays = 0;
	return engine_as_damage(err,
				snapshot_find(task->engine.store, taken.snapshot.id, ret, err));
}

/* 1 if it is a snapshot that was there before. */
static int find_start(struct task *task, const struct engine_clone_options *options,
		      struct engine_clones *made, struct snapshot *ret, struct err *err)
{
	CLEANUP(state_done) struct state state = { 0 };
	AUTO_FREE char *here = options->from ? NULL : clone_here(&task->engine);
	const char *from = here ? here : options->from;
	int r;

	if (!from || strcmp(from, ".") == 0)
		return base_now(task, NULL, options, made, ret, err);
	r = state_find(&task->engine, task->engine.store, from, &state, err);
	if (r < 0)
		return r;
	if (state.kind == STATE_CLONE)
		return base_now(task, from, options, made, ret, err);
	*ret = TAKE_STRUCT(state.snapshot);
	return 1;
}

/* --- names ------------------------------------------------------------------------------ */

/* The clones that one command makes. */
struct making {
	struct task *task;
	const struct engine_clone_options *options;
	struct snapshot start;  /* what they show at first */
	struct catalog_id base; /* the project's state that `start` descends from */
	struct project project;
	struct clone_git git;
	struct promises_stay stay;
	struct engine_clones clones; /* named as soon as that is known */
};

static void go(struct making *m)
{
	promises_go(m->task->host->promises, &m->stay);
}

static void making_done(struct making *m)
{
	go(m);
	snapshot_done(&m->start);
	project_done(&m->project);
	clone_git_done(&m->git);
	engine_clones_done(&m->clones);
}

/* 1 if no clone has this name, in the store or among those being made. */
static int is_free(const struct making *m, const char *name, struct err *err)
{
	CLEANUP(clone_done) struct clone other = { 0 };
	int r;

	for (size_t i = 0; i < m->clones.n; i++)
		if (m->clones.list[i].name && strcmp(m->clones.list[i].name, name) == 0)
			return 0;
	r = clone_get(m->task->engine.store, name, &other, err);
	return r == -ENOENT ? 1 : r < 0 ? r : 0;
}

#define WORDS_TRIES 16 /* before a number is added */

static int invent_name(const struct making *m, char name[CLONE_NAME_MAX + 1], struct err *err)
{
	int r;

	for (unsigned i = 0;; i++) {
		r = words_pick(name, err);
		if (r < 0)
			return r;
		if (i >= WORDS_TRIES)
			snprintf(name + strlen(name), CLONE_NAME_MAX + 1 - strlen(name), "-%u",
				 i - WORDS_TRIES + 2);
		r = is_free(m, name, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

static int given_name(const struct making *m, size_t i, char name[CLONE_NAME_MAX + 1],
		      struct err *err)
{
	const char *given = m->options->name;
	int r = clone_check_name(given, err);

	if (r < 0)
		return r;
	if (m->clones.n == 1)
		snprintf(name, CLONE_NAME_MAX + 1, "%s", given);
	else if (snprintf(name, CLONE_NAME_MAX + 1, "%s-%zu", given, i + 1) > CLONE_NAME_MAX)
		return err_set(err, -EINVAL, "the name '%s' leaves no room for '-%zu'", given,
			       i + 1);
	r = is_free(m, name, err);
	if (r == 0)
		return err_set(err, -EEXIST, "there is a clone '%s' already", name);
	return r < 0 ? r : 0;
}

/* Done first, so that a taken name fails before any work. */
static int choose_names(struct making *m, struct err *err)
{
	char name[CLONE_NAME_MAX + 1];
	int r;

	for (size_t i = 0; i < m->clones.n; i++) {
		struct engine_clone *c = &m->clones.list[i];

		r = m->options->name ? given_name(m, i, name, err) : invent_name(m, name, err);
		if (r < 0)
			return r;
		c->name = strdup(name);
		c->path = live_path(m->task->host, name);
		if (!c->name || !c->path || maker_note(c, m->options->via) < 0)
			return err_nomem(err);
	}
	return 0;
}

/* --- making ----------------------------------------------------------------------------- */

static int begin(struct making *m, struct err *err)
{
	const uint64_t count = m->options->count > 0 ? m->options->count : 1;
	AUTO_FREE char *here = NULL;

	if (count > ENGINE_CLONES_MAX)
		return err_set(err, -EINVAL, "no more than %d clones can be made at once",
			       ENGINE_CLONES_MAX);
	if (m->options->carry && (count > 1 || !m->options->from))
		return err_set(err, -EINVAL, "one snapshot is carried to one clone");
	if (m->options->part && (m->options->from || (here = clone_here(&m->task->engine))))
		return err_set(err, -EINVAL,
			       "a part is taken of a project, not of a snapshot or a clone");
	if (m->options->private && !host_is_root())
		return err_set(
		    err, -EPERM,
		    "only root can have a private clone: no permissions are checked in it");
	if (m->options->ttl_ms > (uint64_t)(INT64_MAX - engine_now()) / 1000000)
		return err_set(err, -EINVAL, "no clone lives that long");
	m->clones.list = calloc(count, sizeof(*m->clones.list));
	if (!m->clones.list)
		return err_nomem(err);
	m->clones.n = count;
	return choose_names(m, err);
}

/*
 * Store what the clones start from: the project with repositories of the clone's own.  The snapshot is
 * the first clone's, because the project itself never looks like that.
 */
static int put_grafted(struct making *m, struct batch *b, int64_t created, struct err *err)
{
	static char message[] = "with a git directory of its own";
	struct snapshot *at = &m->start, s = {
		.parent = at->id,
		.project = at->project,
		.clone = m->clones.list[0].name,
		.message = message,
		.created = created,
		.lacks = at->lacks,
		.part = at->part,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	struct root root;
	int r = clone_git_put(b, &m->git, &at->root, &s.root, &root, err);

	r = r < 0 ? r : catalog_id_new(&s.id, err);
	if (r < 0)
		return r;
	s.base = s.id; /* a rollback to it makes it the base again */
	s.files = root.top.below.files;
	s.bytes = root.top.below.bytes + root.in_links.bytes;
	at->id = m->base = s.id;
	at->root = s.root;
	at->files = s.files;
	at->bytes = s.bytes;
	return snapshot_put(b, &s, REF_NEW, err);
}

/*
 * Store the base of what is carried as one of this project's: the difference between the two is what the clone
 * changes, and a promotion merges that with what the project is.  It is the clone's own, as the project never
 * looked like that.
 */
static int put_carried(struct making *m, struct batch *b, int64_t created, struct err *err)
{
	static char message[] = "carried from another project";
	CLEANUP(snapshot_done) struct snapshot base = { 0 };
	struct snapshot s = {
		.project = m->project.id,
		.clone = m->clones.list[0].name,
		.message = message,
		.created = created,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	int r = snapshot_get(m->task->engine.store, &m->base, &base, err);

	if (r >= 0)
		r = catalog_id_new(&s.id, err);
	if (r < 0)
		return r;
	s.base = s.id;
	s.root = base.root;
	s.files = base.files;
	s.bytes = base.bytes;
	s.lacks = base.lacks;
	s.part = base.part;
	m->base = s.id;
	m->start.project = m->project.id;
	return snapshot_put(b, &s, REF_NEW, err);
}

static int put_records(struct making *m, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct catalog_id none = { 0 }, captured = m->base; /* put_grafted() changes it */
	/* A clone is older than its own snapshots, of which its base is one if it has a part. */
	const int64_t now = m->options->part ? m->start.created - 1 : engine_now();
	int r = batch_begin(m->task->engine.store, &b, err);

	if (r < 0)
		return r;
	if (clone_git_changes(&m->git))
		r = put_grafted(m, b, now + 1, err);
	else if (m->options->carry)
		r = put_carried(m, b, now + 1, err);
	for (size_t i = 0; i < m->clones.n && r >= 0; i++) {
		struct engine_clone *c = &m->clones.list[i];
		const struct clone record = {
			.name = c->name,
			.root = m->start.root,
			.base = m->base,
			.project = m->start.project,
			.created = now,
			.expires = m->options->ttl_ms > 0
				       ? now + (int64_t)m->options->ttl_ms * 1000000
				       : 0,
			.quota = m->options->quota,
			.strict = m->options->strict,
			.private = m->options->private,
			.no_xattrs = m->options->private && m->options->no_xattrs,
			.run = m->options->run,
			.start = catalog_id_same(&m->base, &m->start.id) ? none : m->start.id,
			.owner = m->options->owner,
			.who = c->who,
			.via = c->via,
		};

		catalog_id_hex(&m->base, c->base);
		promises_news(m->task->host->promises, &captured, &c->capturing);
		c->compared = catalog_id_same(&m->base, &m->start.id);
		c->created = record.created;
		c->expires = record.expires;
		c->quota = record.quota;
		c->strict = record.strict;
		c->private = record.private;
		c->no_xattrs = record.no_xattrs;
		r = clone_put(b, &record, REF_NEW, err);
		r = r < 0 ? r : hide_inherit(m->task->engine.store, b, &m->start, &record, err);
	}
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

/* host->snapshots held for reading: what the clone starts from cannot go away any more. */
static int put_locked(struct making *m, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot start = { 0 };
	struct store *s = m->task->host->store;
	char hex[CATALOG_HEX_SIZE];
	int r = snapshot_get(s, &m->start.id, &start, err);

	if (r == -ENOENT)
		return err_set(err, r, "snapshot '%s' was removed just now",
			       catalog_id_hex(&m->start.id, hex));
	if (r < 0)
		return r;
	r = descent_base(s, &m->start, &m->base, err);
	return r < 0 ? r : put_records(m, err);
}

static int put_all(struct making *m, struct err *err)
{
	struct host *h = m->task->host;
	int r;

	pthread_rwlock_rdlock(&h->snapshots);
	r = put_locked(m, err);
	pthread_rwlock_unlock(&h->snapshots);
	return r;
}

static int mount_one(struct making *m, size_t i, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	struct host *h = m->task->host;
	const char *name = m->clones.list[i].name;
	int r = turns_take(&h->turns, name, &turn, err);

	if (r < 0)
		return r;
	/* The warm clone is mounted for others too, so a private one cannot use it. */
	return m->options->private ? live_mount(h, name, err)
				   : live_mount_first(h, name, &m->start.root, err);
}

/* Remove the clones again; nobody has seen them yet. */
static void unmake(struct making *m)
{
	struct engine_removed removed;
	struct err err = { 0 };

	for (size_t i = 0; i < m->clones.n; i++)
		if (clone_remove(m->task, m->clones.list[i].name, true, &removed, &err) < 0)
			log_warn("%s, continuing", err.msg);
}

static int mount_all(struct making *m, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < m->clones.n && r >= 0; i++) {
		r = mount_one(m, i, err);
		m->clones.list[i].mounted = r >= 0;
	}
	if (r < 0)
		unmake(m);
	return r;
}

/* A clone has the project's owners and modes, so the same permissions apply. */
static void warn_of_owner(const struct making *m)
{
	struct stat st;

	if (geteuid() != 0 && lstat(m->project.path, &st) == 0 && st.st_uid != geteuid())
		engine_warn(&m->task->engine,
			    "'%s' belongs to user %u: in the clone, as there, you can change only "
			    "what its permissions let you change",
			    m->project.path, st.st_uid);
}

static int describe(struct making *m, struct err *err)
{
	for (size_t i = 0; i < m->clones.n; i++) {
		struct engine_clone *c = &m->clones.list[i];

		c->project = strdup(m->project.path);
		c->part = m->start.part ? strdup(m->start.part) : NULL;
		if (!c->project || (m->start.part && !c->part))
			return err_nomem(err);
	}
	m->clones.project = strdup(m->project.path);
	return m->clones.project ? 0 : err_nomem(err);
}

static int find_project(struct making *m, struct err *err)
{
	struct engine *e = &m->task->engine;

	if (m->options->carry)
		return project_around(e, e->store, &m->project, err);
	return engine_as_damage(err, project_get(e->store, &m->start.project, &m->project, err));
}

static void expect_expiry(struct host *h, int64_t when)
{
	LOCKED(&h->lock);
	if (when != 0 && when < h->next_expiry)
		h->next_expiry = when;
}

/* The end of a lazy capture may have settled the snapshot since it was found. */
static int stay(struct making *m, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot now = { 0 };
	int r;

	m->stay.project = m->start.project;
	promises_stay(m->task->host->promises, &m->stay);
	r = snapshot_get(m->task->host->store, &m->start.id, &now, err);
	if (r >= 0)
		m->start.root = now.root;
	return r == -ENOENT ? 0 : r; /* put_locked() says so */
}

/* They are made: what others have to know of them, and what is prepared for the next. */
static void follow_up(const struct making *m)
{
	const struct engine_clone_options *options = m->options;
	struct host *h = m->task->host;

	if (options->strict)
		layers_harden_soon(h->layers);
	warn_of_owner(m);
	expect_expiry(h, m->clones.list[0].expires);
	/* Nobody walks through a clone to have all of its files captured. */
	if (!options->last && !promises_open(h->promises, &m->start.project))
		warm_clone_follow(h->warm_clone, &m->start, m->clones.n,
				  options->expect > 0 ? options->expect : 1);
	/* A clone that a run has for itself is part of the events of that run. */
	if (options->run == 0)
		event_cloned(m->task, &m->clones);
}

/* The repositories of an image are all in it, and a part has none at its top. */
static int prepare_git(struct making *m, struct err *err)
{
	if (m->project.hidden == PROJECT_IMAGE || m->options->part)
		return 0;
	return clone_git_prepare(m->task, &m->start, m->project.path, m->options, &m->clones,
				 &m->git, err);
}

static int make(struct task *task, const struct engine_clone_options *options,
		struct engine_clones *ret, struct catalog_id *ret_start, struct err *err)
{
	CLEANUP(making_done) struct making m = { .task = task, .options = options };
	const uint64_t start = engine_clock_ms();
	int r, stored;

	r = begin(&m, err);
	if (r < 0)
		return r;
	stored = find_start(task, options, &m.clones, &m.start, err);
	if (stored < 0)
		return stored;
	*ret_start = m.start.id;
	r = options->part ? strays_refuse(&m.clones, err) : 0;
	if (r < 0)
		return r;
	r = stay(&m, err);
	r = r < 0 ? r : find_project(&m, err);
	/* A clone's own states have links in their place. */
	if (r >= 0 && stored > 0 && !m.start.clone && m.project.hidden != PROJECT_IMAGE)
		r = strays_find(task, &m.start.root, m.project.path, &m.clones, err);
	if (r < 0)
		return r;
	r = describe(&m, err);
	r = r < 0 ? r : prepare_git(&m, err);
	r = r < 0 ? r : task_wanted(task, err);
	if (r < 0)
		return r;
	r = put_all(&m, err);
	go(&m);
	if (r < 0)
		return r;
	r = mount_all(&m, err);
	if (r < 0)
		return r;
	/* If the client has left, it never saw the clones. */
	r = task_wanted(task, err);
	if (r < 0) {
		unmake(&m);
		return r;
	}
	follow_up(&m);
	m.clones.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(m.clones);
	return 0;
}

/* What is carried to another project must not name promises there. */
static int make_carried(struct task *task, const struct engine_clone_options *options,
			struct engine_clones *ret, struct catalog_id *ret_start, struct err *err)
{
	const struct promises_scope everything = { .all = true };
	struct promises *p = task->host->promises;
	int r = promises_enter(p, task, &everything, &options->watch, err);

	if (r < 0)
		return r;
	r = make(task, options, ret, ret_start, err);
	promises_leave(p);
	return r;
}

int clone_make(struct task *task, const struct engine_clone_options *options,
	       struct engine_clones *ret, struct err *err)
{
	struct catalog_id start = { 0 };
	int r = options->carry ? make_carried(task, options, ret, &start, err)
			       : make(task, options, ret, &start, err);

	if (r < 0)
		unneeded_give_up(task, &start, options->from);
	return r;
}

int clone_announce(struct task *task, const struct engine_clone_options *options,
		   struct engine_announced *ret, struct err *err)
{
	CLEANUP(making_done) struct making m = { .task = task, .options = options };
	int r = find_start(task, options, &m.clones, &m.start, err);

	if (r < 0)
		return r;
	if (!promises_open(task->host->promises, &m.start.project))
		warm_clone_follow(task->host->warm_clone, &m.start, 0, options->expect);
	catalog_id_hex(&m.start.id, ret->snapshot);
	return 0;
}
