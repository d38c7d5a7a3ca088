/*
 * The merge runs at most twice.  The first time the clone is in use: this finds conflicts, and is all
 * that a dry run does.  If the clone has changed since, the second merge runs while nothing can be
 * written to it, so that no write is lost.
 */
#include "engine/api/rebase.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/act/events-i.h"
#include "engine/find/image-i.h"

#include <errno.h>
#include <string.h>

#include "cowfs/store/pin.h"
#include "cowfs/store/root.h"
#include "engine/act/acts-i.h"
#include "engine/act/clone-base-i.h"
#include "engine/act/echo-i.h"
#include "engine/act/gitdir-graft-i.h"
#include "engine/act/gitdir-link-i.h"
#include "engine/act/hold-i.h"
#include "engine/act/land-i.h"
#include "engine/act/resolve-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/gitdir-i.h"
#include "snapshot/diff/changes.h"

struct rebasing {
	struct task *task;
	const struct engine_rebase_options *options;
	struct store *store;
	struct project project;
	struct clone clone;
	struct snapshot base,
	    onto;                /* the old and the new base; the strings of `onto` are borrowed */
	struct snapshot newest;  /* of the clone; all zero: none */
	struct snapshot saved;   /* the clone as it was; its strings are borrowed */
	struct landing landing;  /* the project */
	struct object_id theirs; /* the clone, as it was merged */
	struct resolve_set decided; /* for its conflicts */
	struct object_id merged;    /* pinned; zero: not yet */
	bool carried;               /* `landing` has something of the base */
	int64_t now;
	struct engine_rebased result;
};

static void unpin(struct rebasing *p)
{
	if (!object_id_is_zero(&p->merged))
		store_unpin(p->store, OBJECT_TREE, &p->merged);
	p->merged = (struct object_id){ 0 };
}

static void rebasing_done(struct rebasing *p)
{
	unpin(p);
	if (p->landing.task)
		landing_close(&p->landing);
	resolve_set_done(&p->decided);
	snapshot_done(&p->base);
	snapshot_done(&p->newest);
	clone_done(&p->clone);
	project_done(&p->project);
	engine_rebased_done(&p->result);
}

static int find_clone(struct rebasing *p, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	struct held held;
	int r = clone_meant(&p->task->engine, p->store, p->options->clone, &p->clone, err);

	if (r < 0)
		return r;
	r = clone_origin(p->store, &p->clone, &p->project, &p->base, err);
	if (r >= 0)
		r = image_refuse(&p->clone, &p->project, "rebased on", err);
	if (r < 0)
		return r;
	/* Held, because another rebase and a gc may remove it meanwhile. */
	r = hold_state(p->task, catalog_id_hex(&p->base.id, hex), &p->options->watch, &held, err);
	if (r < 0)
		return r;
	r = task_may_read(p->task, p->project.path, err);
	if (r < 0)
		return r;
	r = hold_clone(p->task, p->clone.name, &held, err);
	if (r < 0)
		return r;
	r = resolve_set_load(p->store, &p->clone, &p->decided, err);
	if (r < 0)
		return r;
	p->theirs = held.root;
	return r;
}

/* --- git's own -------------------------------------------------------------------------- */

/* The .git folders in which something changed. */
struct folders {
	struct engine_rolled_path *list; /* owned */
	size_t n;
};

static void folders_done(struct folders *f)
{
	engine_rolled_paths_free(f->list, f->n);
}

static bool has_folder(const struct engine_rolled_path *list, size_t n, const char *path,
		       size_t len)
{
	return VEC_HAS(it, list, n, strlen(it->path) == len && memcmp(it->path, path, len) == 0);
}

static int add_folder(const char *path, char status, void *ctx, struct err *err)
{
	AUTO_FREE char *folder = NULL;
	struct folders *f = ctx;
	size_t len;

	if (!conflicts_is_git(path, &len) || has_folder(f->list, f->n, path, len))
		return 0;
	folder = strndup(path, len);
	if (!folder || landing_add_path(&f->list, &f->n, folder, 'M', NULL) < 0)
		return err_nomem(err);
	return 0;
}

/* The .git folders that both sides changed: an index or ref cannot be merged line by line. */
static int find_left(struct rebasing *p, struct err *err)
{
	CLEANUP(folders_done) struct folders ours = { 0 }, theirs = { 0 };
	struct engine_rebased *res = &p->result;
	int r = changes_each(p->store, &p->base.root, &p->landing.now.root, add_folder, &ours, err);

	if (r < 0)
		return r;
	r = changes_each(p->store, &p->base.root, &p->theirs, add_folder, &theirs, err);
	for (size_t i = 0; i < ours.n && r >= 0; i++) {
		const char *path = ours.list[i].path;

		if (has_folder(theirs.list, theirs.n, path, strlen(path)) &&
		    landing_add_path(&res->left, &res->n_left, path, 'M', NULL) < 0)
			r = err_nomem(err);
	}
	return r;
}

static bool is_left(const char *path, void *ctx)
{
	const struct rebasing *p = ctx;
	size_t len;

	return conflicts_is_git(path, &len) &&
	       has_folder(p->result.left, p->result.n_left, path, len);
}

static bool is_not_left(const char *path, void *ctx)
{
	return !is_left(path, ctx);
}

/* --- the merged tree -------------------------------------------------------------------- */

/* Merge, and pin the result in place of the previous one. */
static int merge_one(struct rebasing *p, const struct object_id *base, const struct object_id *ours,
		     const struct merge_options *options, struct resolve_set *decided,
		     struct merge *ret, struct err *err)
{
	int r = resolve_merge(p->store, base, ours, &p->theirs, options, decided, ret, err);

	if (r < 0)
		return r;
	r = store_pin(p->store, OBJECT_TREE, &ret->root, err);
	if (r < 0)
		return r;
	unpin(p);
	p->merged = ret->root;
	return 0;
}

/* Take the clone's side in .git folders; the first merge left the project's there. */
static int bring_left(struct rebasing *p, struct err *err)
{
	CLEANUP(merge_done) struct merge m = { 0 };
	struct resolve_set none = { 0 };
	const struct object_id first = p->merged;
	const struct merge_options options = {
		.on_conflict = MERGE_THEIRS,
		.no_renames = true,
		.take = is_left,
		.take_ctx = p,
		.now = p->now,
	};

	if (p->result.n_left == 0)
		return 0;
	return merge_one(p, &p->landing.now.root, &first, &options, &none, &m, err);
}

static int add_change(const char *path, char status, void *ctx, struct err *err)
{
	struct engine_rebased *res = ctx;

	res->changed++;
	return landing_add_path(&res->paths, &res->n_paths, path, status, NULL) < 0 ? err_nomem(err)
										    : 0;
}

static int report_merge(struct rebasing *p, const struct merge *m, struct err *err)
{
	struct engine_rebased *res = &p->result;
	char base[CATALOG_HEX_SIZE];
	const struct conflict_names names = {
		.base = catalog_id_hex(&p->base.id, base),
		.ours = ".",
		.theirs = p->clone.name,
	};
	int r = conflicts_tell(m, &p->decided, &names, &res->conflicts, &res->n_conflicts, err);

	res->conflicted = r > 0;
	res->merged = m->n_merged;
	return r < 0 ? r : changes_each(p->store, &p->theirs, &p->merged, add_change, res, err);
}

static int merge(struct rebasing *p, struct err *err)
{
	CLEANUP(merge_done) struct merge m = { 0 };
	const struct merge_options options = {
		.on_conflict = p->options->on_conflict,
		.style = p->options->style,
		.label_base = "base",
		.label_ours = "project",
		.label_theirs = "clone",
		.take = is_not_left,
		.take_ctx = p,
		.now = p->now,
	};
	int r;

	engine_rebased_done(&p->result);
	r = find_left(p, err);
	if (r < 0)
		return r;
	r = merge_one(p, &p->base.root, &p->landing.now.root, &options, &p->decided, &m, err);
	if (r < 0)
		return r;
	r = bring_left(p, err);
	return r < 0 ? r : report_merge(p, &m, err);
}

/* --- the clone -------------------------------------------------------------------------- */

/* Commit the tree and merge with it instead. */
static int replace_now(struct rebasing *p, struct batch *b, const struct object_id *with,
		       struct err *err)
{
	struct landing *l = &p->landing;
	int r;

	if (object_id_equal(with, &l->now.root))
		return 0;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = store_pin(p->store, OBJECT_TREE, with, err);
	if (r < 0)
		return r;
	store_unpin(p->store, OBJECT_TREE, &l->now.root);
	l->now.root = *with;
	p->carried = true;
	return 0;
}

static int carry_links(struct rebasing *p, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(gitdir_links_done) struct gitdir_links links = { 0 };
	const struct object_id *now = &p->landing.now.root;
	struct object_id linked;
	int r =
	    gitdir_links_carry(&p->task->engine, p->project.path, &p->base.root, now, &links, err);

	if (r < 0 || links.n == 0)
		return r;
	r = batch_begin(p->store, &b, err);
	if (r < 0)
		return r;
	r = gitdir_link(b, now, &links, &linked, err);
	return r < 0 ? r : replace_now(p, b, &linked, err);
}

/*
 * If the project has files `.git` (gitdir-i.h), merge with what the clone's base has in their place, so
 * that these do not seem to have changed.
 */
static int carry_git(struct rebasing *p, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct object_id *now = &p->landing.now.root;
	struct object_id carried;
	int r = carry_links(p, err);

	if (r < 0)
		return r;
	r = gitdir_is_grafted(p->store, &p->base.root, now, err);
	if (r <= 0)
		return r;
	r = batch_begin(p->store, &b, err);
	if (r < 0)
		return r;
	r = gitdir_carry(b, &p->base.root, now, &carried, err);
	return r < 0 ? r : replace_now(p, b, &carried, err);
}

static bool is_unread(const char *path, void *ctx)
{
	const struct rebasing *p = ctx;

	return survey_unread_at(&p->landing.now, path) != NULL;
}

/*
 * What cannot be read has not changed as far as we know: merge with what the clone's base has there, so that
 * the clone's own changes of it stay changes.
 */
static int carry_unread(struct rebasing *p, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(merge_done) struct merge m = { 0 };
	const struct object_id *now = &p->landing.now.root;
	const struct merge_options options = {
		.on_conflict = MERGE_THEIRS,
		.no_renames = true,
		.take = is_unread,
		.take_ctx = p,
		.now = p->now,
	};
	int r;

	if (p->landing.now.unread.n == 0)
		return 0;
	r = batch_begin(p->store, &b, err);
	if (r < 0)
		return r;
	r = merge_trees(b, now, now, &p->base.root, &options, &m, err);
	return r < 0 ? r : replace_now(p, b, &m.root, err);
}

/* Store the project's state that was merged as a snapshot, unless it is one already. */
static int put_onto(struct rebasing *p, char *message, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct landing *l = &p->landing;
	struct root root;
	int r;

	p->onto = l->newest;
	if (history_holds(&l->newest, &l->now.root, &l->newest.base))
		return 0;
	r = root_get(p->store, &l->now.root, &root, err);
	if (r < 0)
		return r;
	p->onto = (struct snapshot){
		.root = l->now.root,
		.parent = l->newest.id,
		.project = p->project.id,
		.message = message,
		.lacks = l->lacking,
		.created = p->now > l->newest.created ? p->now : l->newest.created + 1,
		.files = root.top.below.files,
		.bytes = root.top.below.bytes + root.in_links.bytes,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	r = catalog_id_new(&p->onto.id, err);
	/* It belongs to the clone, because the project itself never looks like that. */
	if (p->carried || p->base.part) {
		p->onto.clone = p->clone.name;
		p->onto.base = p->onto.id;
		p->onto.part = p->base.part;
		if (r >= 0)
			r = survey_join_lacks(p->base.lacks, &l->lacks, &p->onto.lacks, err);
	}
	if (r < 0)
		return r;
	r = batch_begin(p->store, &b, err);
	if (r < 0)
		return r;
	r = snapshot_put(b, &p->onto, REF_NEW, err);
	return r < 0 ? r : batch_commit(b, BATCH_DURABLE, err);
}

/* Called while no write can reach the clone. */
static int choose(const struct layer_state *now, struct object_id *ret, void *ctx, struct err *err)
{
	struct rebasing *p = ctx;
	int r = 0;

	if (!object_id_equal(&now->id, &p->theirs)) {
		p->theirs = now->id;
		r = merge(p, err);
	}
	if (r < 0)
		return r;
	if (p->result.conflicted)
		return err_set(err, -ECANCELED,
			       "the clone was changed meanwhile, and that conflicts");
	*ret = p->merged;
	return r;
}

static int put_saved(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	struct rebasing *p = ctx;
	const bool known = p->newest.clone && history_holds(&p->newest, &state->id, &p->clone.base);

	catalog_id_hex(known ? &p->newest.id : &p->saved.id, p->result.saved);
	if (known)
		return 0;
	p->saved.root = state->id;
	p->saved.files = state->files;
	p->saved.bytes = state->bytes;
	return snapshot_put(b, &p->saved, REF_NEW, err);
}

/* Fill in the snapshot of the clone before the rebase, but for its tree.  We have the turn. */
static int name_saved(struct rebasing *p, char *message, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	const int64_t now = engine_now();
	int r = history_load(p->store, &p->project.id, &p->clone, &h, err);

	if (r < 0)
		return r;
	r = history_last(p->store, &h, NULL, NULL, &p->newest, err);
	if (r < 0)
		return r;
	p->saved = (struct snapshot){
		.created = now > p->newest.created ? now : p->newest.created + 1,
		.parent = h.n > 0 ? p->newest.id : p->clone.base,
		.project = p->project.id,
		.clone = p->clone.name,
		.message = message,
		.lacks = p->base.lacks,
		.part = p->base.part,
		.base = p->clone.base,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	if (p->saved.created <= p->clone.created)
		p->saved.created = p->clone.created + 1;
	return catalog_id_new(&p->saved.id, err);
}

/* host->snapshots held for reading until the commit names what was found (forget-i.h). */
static int rebase_locked(struct rebasing *p, struct layer *layer, struct layer_changes *changes,
			 struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot found = { 0 };
	const struct layer_rebase how = {
		.choose = choose,
		.also = put_saved,
		.ctx = p,
		.from = &p->base,
		.to = &p->onto,
	};
	int r = snapshot_get(p->store, &p->onto.id, &found, err);

	if (r == -ENOENT)
		return err_set(err, r, "the snapshot to rebase onto was removed just now");
	return r < 0 ? r : layer_rebase(layer, &how, changes, err);
}

static int switch_layer(struct layer *layer, struct mount *mount, void *ctx, struct err *err)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	struct rebasing *p = ctx;
	struct host *h = p->task->host;
	struct err why = { 0 };
	int r;

	pthread_rwlock_rdlock(&h->snapshots);
	r = rebase_locked(p, layer, &changes, err);
	pthread_rwlock_unlock(&h->snapshots);
	/* A conflict is a result, even at the last moment. */
	if (r < 0)
		return r == -ECANCELED && p->result.conflicted ? 0 : r;
	if (mount && echo_announce(p->task, p->clone.name, mount, &changes, &why) < 0)
		engine_warn(&p->task->engine,
			    "clone '%s' is rebased, but programs may still see the old files: %s",
			    p->clone.name, why.msg);
	return r;
}

static int switch_clone(struct rebasing *p, char *message, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone found = { 0 };
	struct host *h = p->task->host;
	int r = turns_take(&h->turns, p->clone.name, &turn, err);

	if (r < 0)
		return r;
	/* The task that had the turn before may have removed or rebased the clone. */
	r = clone_find(p->store, p->clone.name, &found, err);
	if (r < 0)
		return r;
	if (found.created != p->clone.created || !catalog_id_same(&found.base, &p->clone.base))
		return err_set(err, -EBUSY, "clone '%s' has got another base just now", found.name);
	r = name_saved(p, message, err);
	if (r < 0)
		return r;
	return live_change(h, p->clone.name, switch_layer, p, err);
}

/* --- the whole -------------------------------------------------------------------------- */

static int act(struct rebasing *p, struct err *err)
{
	AUTO_FREE char *onto = NULL, *saved = NULL;
	char hex[CATALOG_HEX_SIZE];
	int r;

	onto = text_format("rebase of %s", p->clone.name);
	r = onto ? task_wanted(p->task, err) : err_nomem(err);
	if (r < 0)
		return r;
	r = put_onto(p, onto, err);
	if (r < 0)
		return r;
	saved = text_format("before rebase onto %s", catalog_id_hex(&p->onto.id, hex));
	if (!saved)
		return err_nomem(err);
	/* Holding one turn, never take a second. */
	turn_give(p->landing.turn);
	p->landing.turn = NULL;
	r = switch_clone(p, saved, err);
	if (r < 0)
		return r;
	if (p->result.saved[0] != '\0')
		catalog_id_hex(&p->onto.id, p->result.onto);
	return r;
}

static int rebase(struct rebasing *p, struct err *err)
{
	struct survey_options survey = { .skip_unreadable = p->options->skip_unreadable,
					 .watch = p->options->watch };
	int r = find_clone(p, err);

	if (r < 0)
		return r;
	survey.part = p->base.part;
	r = landing_open(&p->landing, p->task, &p->project, &survey, err);
	r = r < 0 ? r : landing_check_unread(&p->landing, err);
	if (r < 0)
		return r;
	p->now = engine_now();
	r = carry_git(p, err);
	r = r < 0 ? r : carry_unread(p, err);
	if (r < 0)
		return r;
	if (object_id_equal(&p->landing.now.root, &p->base.root)) {
		catalog_id_hex(&p->base.id, p->result.onto);
		return 0;
	}
	r = merge(p, err);
	return r < 0 || p->result.conflicted || p->options->dry_run ? r : act(p, err);
}

int rebase_do(struct task *task, const struct engine_rebase_options *options,
	      struct engine_rebased *ret, struct err *err)
{
	CLEANUP(rebasing_done) struct rebasing p = { .task = task, .options = options };
	const uint64_t start = engine_clock_ms();
	int r = engine_store(&task->engine, STORE_WRITE, &p.store, err);

	if (r < 0)
		return r;
	clone_base_settle(task->host);
	r = rebase(&p, err);
	if (r < 0)
		return r;
	if (p.result.saved[0] != '\0')
		resolve_used(task, &p.clone, &p.decided);
	p.result.dry_run = options->dry_run;
	p.result.clone = strdup(p.clone.name);
	p.result.project = strdup(p.project.path);
	if (!p.result.clone || !p.result.project)
		return err_nomem(err);
	catalog_id_hex(&p.base.id, p.result.from);
	event_rebased(task, &p.result);
	p.result.elapsed_ms = engine_clock_ms() - start;
	*ret = TAKE_STRUCT(p.result);
	return 0;
}
