/*
 * The present and the wanted state are compared before anything is saved or changed, so that a
 * rollback to the present state makes no snapshot.  Both roots are pinned meanwhile, so nothing that
 * runs beside can remove them.
 */
#include "engine/api/rollback.h"
#include "engine/act/events-i.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cowfs/store/pin.h"
#include "cowfs/store/root.h"
#include "engine/act/acts-i.h"
#include "engine/act/echo-i.h"
#include "engine/act/land-i.h"
#include "engine/find/patterns-i.h"
#include "engine/find/rules-i.h"
#include "snapshot/apply/judge.h"
#include "snapshot/merge/merge.h"

#define GIT    ".git"
#define BEFORE "before "

struct rolling {
	struct task *task;
	const struct engine_rollback_options *options;
	struct store *store;
	struct project project;
	struct clone clone;     /* its name NULL: the project itself */
	struct snapshot to;     /* what is wanted */
	struct snapshot base;   /* of a clone: its base now, ... */
	struct snapshot rebase; /* ... and its base when `to` was taken; all zero: the same */
	struct snapshot newest; /* of the same origin; all zero: none */
	char last
	    [CATALOG_HEX_SIZE]; /* the newest that somebody asked for, else what a clone started as */
	struct snapshot
	    saved; /* its strings are borrowed; zero id: `newest` already has this state */
	struct object_id now;
	struct ignore *paths;    /* owned; the paths to roll back; NULL: all */
	struct object_id wanted; /* the result: `to`, or the present state with `paths` from `to` */
	bool pinned;             /* `wanted` is pinned */
	const struct capture_report *unread; /* of a project: what could not be read; or NULL */
	struct plan plan;
	struct engine_rolled result;
};

static void rolling_done(struct rolling *g)
{
	project_done(&g->project);
	clone_done(&g->clone);
	snapshot_done(&g->to);
	snapshot_done(&g->base);
	snapshot_done(&g->rebase);
	snapshot_done(&g->newest);
	if (g->pinned)
		store_unpin(g->store, OBJECT_TREE, &g->wanted);
	ignore_free(g->paths);
	plan_done(&g->plan);
	engine_rolled_done(&g->result);
}

/* --- what is meant ---------------------------------------------------------------------- */

/* 1 if the word names a clone, which is then loaded. */
static int is_clone(struct rolling *g, const char *word, struct err *err)
{
	int r =
	    clone_check_name(word, NULL) < 0 ? -ENOENT : clone_get(g->store, word, &g->clone, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* Find the clone, if the words name one, and the word that names the snapshot. */
static int choose(struct rolling *g, const char **ret_state, struct err *err)
{
	const struct engine_rollback_options *o = g->options;
	AUTO_FREE char *here = clone_here(&g->task->engine);
	int r = 0;

	*ret_state = o->second;
	if (o->second)
		return clone_find(g->store, o->first, &g->clone, err);
	if (o->first)
		r = is_clone(g, o->first, err);
	if (r != 0)
		return r < 0 ? r : 0;
	*ret_state = o->first;
	return here ? clone_find(g->store, here, &g->clone, err) : 0;
}

static int find_project(struct rolling *g, struct err *err)
{
	int r;

	if (g->clone.name)
		return engine_as_damage(err,
					project_get(g->store, &g->clone.project, &g->project, err));
	r = project_around(&g->task->engine, g->store, &g->project, err);
	return r < 0 ? r : task_may_read(g->task, g->project.path, err);
}

static int find_newest(struct rolling *g, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	const struct clone *clone = g->clone.name ? &g->clone : NULL;
	int r;

	r = history_load(g->store, &g->project.id, clone, &h, err);
	if (r < 0)
		return engine_as_damage(err, r);
	r = history_last(g->store, &h, clone, &g->newest, err);
	if (r < 0)
		return r;
	history_keep_users(&h);
	if (h.n > 0 && !h.list[0].automatic)
		memcpy(g->last, h.list[0].id, sizeof(g->last));
	else if (g->clone.name)
		catalog_id_hex(clone_start(&g->clone), g->last);
	return 0;
}

static int find_wanted(struct rolling *g, const char *state, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	int r;

	if (!state && catalog_id_is_zero(&g->newest.id))
		return err_set(err, -ENOENT, "'%s' has no snapshot yet", g->project.path);
	if (!state && g->last[0] == '\0')
		return err_set(err, -ENOENT, "'%s' has automatic snapshots only; name one to go to",
			       g->project.path);
	if (state)
		r = state_resolve(&g->task->engine, g->store, state, &g->to, err);
	else
		r = engine_as_damage(err, snapshot_find(g->store, g->last, &g->to, err));
	if (r < 0)
		return r;
	if (!catalog_id_same(&g->to.project, &g->project.id))
		return err_set(err, -EINVAL, "snapshot %s is of another project than '%s'",
			       catalog_id_hex(&g->to.id, hex), g->project.path);
	return 0;
}

/* --- what would change ------------------------------------------------------------------ */

static int list_step(const struct plan_step *s, void *ctx)
{
	struct engine_rolled *r = ctx;

	return landing_add_path(&r->paths, &r->n_paths, s->path,
				s->act == PLAN_CREATE   ? 'A'
				: s->act == PLAN_REMOVE ? 'D'
							: 'M',
				NULL);
}

/* Paths of a project that stay as they are. */
struct leaving {
	char *lacks;       /* owned; paths that the snapshot lacks */
	const char **list; /* owned */
	size_t n;
};

static void leaving_done(struct leaving *l)
{
	free(l->lacks);
	free(l->list);
}

/* Was the state made by a clone?  Then what a run left there would reach the project. */
static bool is_foreign(const struct rolling *g)
{
	return !g->clone.name && g->to.clone;
}

static int find_left(const struct rolling *g, struct leaving *l, struct err *err)
{
	size_t n = 2 + (g->unread ? g->unread->n : 0);

	l->lacks = strdup(g->to.lacks && !g->clone.name ? g->to.lacks : "");
	for (const char *p = l->lacks; p && (p = strstr(p, "//")); p += 2)
		n++;
	l->list = calloc(n, sizeof(*l->list));
	if (!l->lacks || !l->list)
		return err_nomem(err);
	if (g->options->no_git || is_foreign(g))
		l->list[l->n++] = GIT;
	for (size_t i = 0; g->unread && i < g->unread->n; i++)
		l->list[l->n++] = g->unread->list[i].path;
	for (char *p = l->lacks, *next; p && *p != '\0'; p = next) {
		next = strstr(p, "//");
		if (next) {
			*next = '\0';
			next += 2;
		}
		l->list[l->n++] = p;
	}
	return 0;
}

/* --- only some paths -------------------------------------------------------------------- */

struct picking {
	const struct rolling *rolling;
	const struct leaving *leaving;
};

static bool is_below(const char *path, const char *top)
{
	const size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_picked(const char *path, void *ctx)
{
	const struct picking *p = ctx;

	for (size_t i = 0; i < p->leaving->n; i++)
		if (is_below(path, p->leaving->list[i]))
			return false;
	return ignore_covers(p->rolling->paths, path);
}

/* The present state with the named paths from the snapshot.  It cannot conflict. */
static int mix(struct rolling *g, const struct leaving *leaving, struct object_id *ret,
	       struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	CLEANUP(merge_done) struct merge m = { 0 };
	struct picking picking = { .rolling = g, .leaving = leaving };
	const struct merge_options options = {
		.on_conflict = MERGE_THEIRS,
		.no_renames = true,
		.take = is_picked,
		.take_ctx = &picking,
		.now = engine_now(),
	};
	int r = batch_begin(g->store, &b, err);

	if (r < 0)
		return r;
	r = merge_trees(b, &g->now, &g->now, &g->to.root, &options, &m, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = store_pin(g->store, OBJECT_TREE, &m.root, err);
	if (r < 0)
		return r;
	*ret = m.root;
	return r;
}

static int find_root(struct rolling *g, const struct leaving *leaving, struct err *err)
{
	struct object_id mixed;
	int r;

	if (!g->paths) {
		g->wanted = g->to.root;
		return 0;
	}
	r = mix(g, leaving, &mixed, err);
	if (r < 0)
		return r;
	if (g->pinned)
		store_unpin(g->store, OBJECT_TREE, &g->wanted);
	g->wanted = mixed;
	g->pinned = true;
	return 0;
}

/* Plan the way from `now` to `wanted`. */
static int compare(struct rolling *g, int64_t as_of, struct err *err)
{
	CLEANUP(leaving_done) struct leaving leaving = { 0 };
	struct plan_options options = {
		.leave_ignored = !g->clone.name,
		.as_of = as_of,
	};
	int r = find_left(g, &leaving, err);

	options.leave = leaving.list;
	options.n_leave = leaving.n;
	options.leave_unwanted =
	    !g->clone.name && g->to.lacks && strcmp(g->to.lacks, SNAPSHOT_LACKS_MORE) == 0;
	if (r < 0)
		return r;
	r = find_root(g, &leaving, err);
	if (r < 0)
		return r;
	r = plan_make(g->store, &g->now, &g->wanted, &options, &g->plan, err);
	if (r < 0)
		return r;
	g->result.changed = plan_count(&g->plan);
	return plan_each(&g->plan, list_step, &g->result) < 0 ? err_nomem(err) : 0;
}

/* --- keeping what is there -------------------------------------------------------------- */

/* Fill in the snapshot of the present state, but for its tree. */
static int name_saved(struct rolling *g, char *message, struct err *err)
{
	struct snapshot *s = &g->saved;

	*s = (struct snapshot){
		.created = engine_now(),
		.parent = g->newest.id,
		.project = g->project.id,
		.clone = g->clone.name,
		.message = message,
		.lacks = g->clone.name ? g->newest.lacks : NULL,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	if (s->created <= g->newest.created)
		s->created = g->newest.created + 1;
	if (s->created <= g->clone.created)
		s->created = g->clone.created + 1;
	return catalog_id_new(&s->id, err);
}

static int put_saved(struct rolling *g, struct batch *b, const struct object_id *root,
		     uint64_t files, uint64_t bytes, struct err *err)
{
	/* Only a snapshot of the clone itself restores its base, too. */
	const bool known = history_holds(&g->newest, root, &g->saved.base) &&
			   (catalog_id_is_zero(&g->rebase.id) || g->newest.clone);

	catalog_id_hex(known ? &g->newest.id : &g->saved.id, g->result.saved);
	if (known)
		return 0;
	g->saved.root = *root;
	g->saved.files = files;
	g->saved.bytes = bytes;
	return snapshot_put(b, &g->saved, REF_NEW, err);
}

/* --- a clone ---------------------------------------------------------------------------- */

static int put_state(struct batch *b, const struct layer_state *state, void *ctx, struct err *err)
{
	return put_saved(ctx, b, &state->id, state->files, state->bytes, err);
}

/* Called while no write can reach the clone, which may have changed since compare(). */
static int choose_root(const struct layer_state *now, struct object_id *ret, void *ctx,
		       struct err *err)
{
	struct rolling *g = ctx;
	int r = 0;

	if (!object_id_equal(&now->id, &g->now)) {
		g->now = now->id;
		plan_done(&g->plan);
		engine_rolled_paths_free(g->result.paths, g->result.n_paths);
		g->result.paths = NULL;
		g->result.n_paths = 0;
		r = compare(g, 0, err);
	}
	*ret = g->wanted;
	return r;
}

static int switch_layer(struct rolling *g, struct layer *layer, struct mount *mount,
			struct err *err)
{
	CLEANUP(layer_changes_done) struct layer_changes changes = { 0 };
	const bool rebases = !catalog_id_is_zero(&g->rebase.id);
	const struct layer_rebase how = {
		.also = put_state,
		.ctx = g,
		.choose = g->paths ? choose_root : NULL,
		.target = &g->to.root,
		.from = &g->base,
		.to = rebases ? &g->rebase : NULL,
	};
	struct layer_state state;
	struct err why = { 0 };
	int r;

	r = layer_persist(layer, BATCH_SAFE, NULL, NULL, &state, err);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", g->clone.name);
	g->now = state.id;
	r = compare(g, 0, err);
	if (r < 0 || g->options->dry_run || (plan_is_empty(&g->plan) && !rebases))
		return r;
	r = task_wanted(g->task, err);
	if (r < 0)
		return r;
	r = layer_rebase(layer, &how, &changes, err);
	if (r < 0)
		return r;
	if (mount && echo_announce(g->task, g->clone.name, mount, &changes, &why) < 0)
		engine_warn(
		    &g->task->engine,
		    "clone '%s' is rolled back, but programs may still see the old files: %s",
		    g->clone.name, why.msg);
	return r;
}

/* A clone that is not mounted is opened for the change only. */
static int switch_stored(struct rolling *g, struct err *err)
{
	struct host *h = g->task->host;
	struct layer *layer;
	int r, end;

	r = host_serve(h, err);
	r = r < 0 ? r : layer_open(h->layers, g->clone.name, &layer, err);
	if (r < 0)
		return err_wrap(err, r, "clone '%s'", g->clone.name);
	r = switch_layer(g, layer, NULL, err);
	end = layer_close(layer, r < 0 ? NULL : err);
	if (end < 0)
		layer_discard(layer); /* nothing was written to it */
	return r < 0 ? r : end;
}

/* A snapshot from before a rebase needs the base that the clone had then. */
static int find_bases(struct rolling *g, const struct clone *found, struct err *err)
{
	const struct snapshot *to = &g->to;
	int r;

	g->saved.base = found->base;
	if (g->paths || !to->clone || strcmp(to->clone, found->name) != 0 ||
	    to->created <= found->created || catalog_id_is_zero(&to->base) ||
	    catalog_id_same(&to->base, &found->base))
		return 0;
	r = engine_as_damage(err, snapshot_get(g->store, &found->base, &g->base, err));
	if (r < 0)
		return r;
	return engine_as_damage(err, snapshot_get(g->store, &to->base, &g->rebase, err));
}

static int roll_clone(struct rolling *g, struct err *err)
{
	CLEANUP(turn_give_p) struct turn *turn = NULL;
	CLEANUP(clone_done) struct clone found = { 0 };
	struct host *h = g->task->host;
	struct live *live;
	int r;

	r = turns_take(&h->turns, g->clone.name, &turn, err);
	if (r < 0)
		return r;
	/* Whoever had the turn before may have removed the clone. */
	r = clone_find(g->store, g->clone.name, &found, err);
	if (r < 0)
		return r;
	r = find_bases(g, &found, err);
	if (r < 0)
		return r;
	live = live_find(h, g->clone.name);
	return live ? switch_layer(g, live->layer, live->mount, err) : switch_stored(g, err);
}

/* --- the project ------------------------------------------------------------------------ */

static int add_judgement(const struct judgement *it, void *ctx)
{
	struct engine_rolled *r = ctx;

	if (!it->rule)
		return 0;
	if (it->rule->level == GUARD_HOLD)
		return landing_add_note(&r->held, &r->n_held, it->step->path, it->status,
					it->rule->name, it->detail);
	return landing_add_note(&r->warned, &r->n_warned, it->step->path, it->status,
				it->rule->name, it->detail);
}

static int judge(struct rolling *g, struct err *err)
{
	CLEANUP(engine_rules_done) struct engine_rules rules = { 0 };
	CLEANUP(guard_free_p) struct guard *guard = NULL;
	struct judge_options options = {
		.top = g->project.path,
		.allow = g->options->allow.items,
		.n_allow = g->options->allow.n,
	};
	int r;

	if (!is_foreign(g))
		return 0;
	r = rules_guard(g->options->rules, g->project.path, &rules, &guard, err);
	if (r < 0)
		return r;
	options.guard = guard;
	r = judge_plan(g->store, &g->plan, &options, add_judgement, &g->result, err);
	return r == -ENOMEM ? err_nomem(err) : r;
}

/* Fill in the snapshot of the result when only some paths go back: none has it yet. */
static int fill_some(struct rolling *g, struct snapshot *ret, struct err *err)
{
	struct root root;
	int r = root_get(g->store, &g->wanted, &root, err);

	if (r < 0)
		return r;
	*ret = (struct snapshot){
		.root = g->wanted,
		.message = g->saved.message + strlen(BEFORE),
		.files = root.top.below.files,
		.bytes = root.top.below.bytes + root.in_links.bytes,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	return 0;
}

/* A conflict or a held path is a result; then nothing was changed. */
static int change_project(struct rolling *g, struct landing *landing, struct err *err)
{
	CLEANUP(landed_done) struct landed landed = { 0 };
	struct snapshot some;
	struct landing_act act = {
		.receipt = { .kind = RECEIPT_ROLLBACK },
		.message = g->saved.message,
		.after = &g->to,
		.watch = g->options->watch,
	};
	int r = compare(g, landing->as_of, err);

	if (r < 0)
		return r;
	r = judge(g, err);
	if (r < 0 || g->options->dry_run || g->result.n_held > 0 || plan_is_empty(&g->plan))
		return r;
	if (g->paths) {
		r = fill_some(g, &some, err);
		if (r < 0)
			return r;
		act.after = &some;
		act.receipt.base = g->to.id;
	}
	r = landing_act(landing, &g->plan, &act, &landed, err);
	memcpy(g->result.saved, landed.before, sizeof(g->result.saved));
	memcpy(g->result.receipt, landed.receipt, sizeof(g->result.receipt));
	g->result.conflicts = TAKE_PTR(landed.conflicts);
	g->result.n_conflicts = landed.n_conflicts;
	landed.n_conflicts = 0;
	return r;
}

static int roll_project(struct rolling *g, struct err *err)
{
	CLEANUP(landing_close) struct landing landing;
	const struct survey_options options = {
		.skip_unreadable = g->options->skip_unreadable,
		.watch = g->options->watch,
	};
	int r = landing_open(&landing, g->task, &g->project, &options, err);

	g->now = landing.now.root;
	g->unread = &landing.now.unread;
	r = r < 0 ? r : change_project(g, &landing, err);
	g->unread = NULL;
	return r;
}

/* --- either ----------------------------------------------------------------------------- */

static int roll(struct rolling *g, const char *state, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];
	AUTO_FREE char *message = NULL;
	int r;

	r = find_project(g, err);
	if (r < 0)
		return r;
	r = find_newest(g, err);
	if (r < 0)
		return r;
	r = find_wanted(g, state, err);
	if (r < 0)
		return r;
	if (asprintf(&message, BEFORE "rollback %sto %s", g->paths ? "of some paths " : "",
		     catalog_id_hex(&g->to.id, hex)) < 0) {
		message = NULL;
		return err_nomem(err);
	}
	r = name_saved(g, message, err);
	if (r < 0)
		return r;
	r = store_pin(g->store, OBJECT_TREE, &g->to.root, err);
	if (r < 0)
		return r;
	r = g->clone.name ? roll_clone(g, err) : roll_project(g, err);
	store_unpin(g->store, OBJECT_TREE, &g->to.root);
	return r;
}

int rollback_do(struct task *task, const struct engine_rollback_options *options,
		struct engine_rolled *ret, struct err *err)
{
	CLEANUP(rolling_done) struct rolling g = { .task = task, .options = options };
	const uint64_t start = engine_clock_ms();
	const char *state;
	int r;

	r = engine_store(&task->engine, STORE_WRITE, &g.store, err);
	if (r < 0)
		return r;
	r = patterns_parse(&options->paths, &g.paths, err);
	if (r < 0)
		return r;
	r = choose(&g, &state, err);
	if (r < 0)
		return r;
	if (g.clone.name && (options->no_git || options->skip_unreadable))
		return err_set(err, -EINVAL, "option '--%s' is for projects, not for clone '%s'",
			       options->no_git ? "no-git" : "skip-unreadable", g.clone.name);
	r = roll(&g, state, err);
	if (r < 0)
		return r;
	catalog_id_hex(&g.to.id, g.result.to);
	g.result.dry_run = options->dry_run;
	g.result.clone = g.clone.name ? strdup(g.clone.name) : NULL;
	g.result.project = strdup(g.project.path);
	if (!g.result.project || (g.clone.name && !g.result.clone))
		return err_nomem(err);
	event_rolled(task, &g.result);
	g.result.elapsed_ms = engine_clock_ms() - start;
	*ret = g.result;
	g.result = (struct engine_rolled){ 0 };
	return 0;
}
