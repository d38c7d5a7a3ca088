/*
 * A promotion and an undo are the same act: what happened between two states is done to the project.
 * Of a promotion these are the clone's base and the clone now; of an undo what the receipt calls
 * after and before.
 */
#include "engine/promote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cowfs/store/pin.h"
#include "cowfs/store/root.h"
#include "cowfs/store/xattrs.h"
#include "engine/hold-i.h"
#include "engine/land-i.h"
#include "engine/promote-i.h"
#include "snapshot/ignore.h"

#define GIT ".git"

struct promoting {
	struct engine *engine;
	const struct promote_options *options;
	struct store *store;
	struct project project;
	struct clone clone;           /* its name NULL: an undo */
	struct receipt undoes;        /* of an undo */
	struct snapshot base, theirs; /* `theirs` of an undo alone */
	struct object_id theirs_root;
	bool with_git; /* git's own takes part */
	struct guard *guard;
	struct ignore *paths, *excludes;
	struct landing landing;
	struct merge merge;
	struct object_id pinned; /* the merged tree; zero: not yet */
	struct plan plan;
	int64_t now;
	char *checks;    /* what options->checks says */
	struct err *err; /* of a walk */
	struct engine_promotion result;
};

static void promoting_done(struct promoting *p)
{
	if (!object_id_is_zero(&p->pinned))
		store_unpin(p->store, OBJECT_TREE, &p->pinned);
	if (p->landing.engine)
		landing_close(&p->landing);
	plan_done(&p->plan);
	merge_done(&p->merge);
	free(p->checks);
	guard_free(p->guard);
	ignore_free(p->paths);
	ignore_free(p->excludes);
	snapshot_done(&p->base);
	snapshot_done(&p->theirs);
	receipt_done(&p->undoes);
	clone_done(&p->clone);
	project_done(&p->project);
	engine_promotion_done(&p->result);
}

/* --- what is meant ---------------------------------------------------------------------- */

static int find_clone(struct promoting *p, struct err *err)
{
	AUTO_FREE char *here = p->options->asked->clone ? NULL : clone_here(p->engine);
	const char *name = here ? here : p->options->asked->clone;
	struct held held;
	int r;

	if (!name)
		return err_set(err, -EINVAL, "which clone is to be promoted?");
	r = clone_find(p->store, name, &p->clone, err);
	if (r >= 0)
		r = engine_as_damage(err,
				     project_get(p->store, &p->clone.project, &p->project, err));
	if (r >= 0)
		r = engine_as_damage(err, snapshot_get(p->store, &p->clone.base, &p->base, err));
	if (r >= 0)
		r = hold_clone(p->engine, name, &held, err);
	if (r >= 0)
		p->theirs_root = held.root;
	return r;
}

/* A snapshot of a receipt, which somebody may have removed since. */
static int find_state(struct promoting *p, const struct catalog_id *id, struct snapshot *ret,
		      struct err *err)
{
	char hex[CATALOG_HEX_SIZE], of[CATALOG_HEX_SIZE];
	int r = snapshot_get(p->store, id, ret, err);

	if (r == -ENOENT)
		return err_set(err, r, "%s cannot be undone: its snapshot %s was removed",
			       catalog_id_hex(&p->undoes.id, of), catalog_id_hex(id, hex));
	return r;
}

static int find_undone(struct promoting *p, struct err *err)
{
	struct held held;
	char hex[CATALOG_HEX_SIZE];
	int r;

	r = project_around(p->engine, p->store, &p->project, err);
	if (r >= 0)
		r = receipt_find(p->store, &p->project, p->options->receipt, &p->undoes, err);
	if (r >= 0)
		r = find_state(p, &p->undoes.after, &p->base, err);
	if (r >= 0)
		r = find_state(p, &p->undoes.before, &p->theirs, err);
	if (r >= 0)
		r = hold_state(p->engine, catalog_id_hex(&p->theirs.id, hex),
			       &p->options->asked->watch, &held, err);
	if (r < 0)
		return r;
	p->theirs_root = p->theirs.root;
	catalog_id_hex(&p->undoes.id, p->result.undone);
	return 0;
}

static int parse_patterns(const struct engine_list *list, struct ignore **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	if (list->n == 0)
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (buf_append(&text, list->items[i], strlen(list->items[i])) < 0 ||
		    buf_append(&text, "\n", 1) < 0)
			return err_nomem(err);
	return ignore_parse(text.data, text.len, ret, err);
}

/* --- what takes part -------------------------------------------------------------------- */

/* Is it git's own, or in it?  Then `ret_len` bytes of the path are git's folder. */
static bool is_git(const char *path, size_t *ret_len)
{
	const size_t len = strlen(GIT);
	const char *at = path;

	for (;;) {
		if (strncmp(at, GIT, len) == 0 && (at[len] == '\0' || at[len] == '/')) {
			*ret_len = (size_t)(at - path) + len;
			return true;
		}
		at = strchr(at, '/');
		if (!at)
			return false;
		at++;
	}
}

static void tell_left(struct promoting *p, const char *path, size_t len)
{
	struct engine_promotion *res = &p->result;
	AUTO_FREE char *folder = strndup(path, len);

	if (!folder)
		return;
	for (size_t i = 0; i < res->n_left; i++)
		if (strcmp(res->left[i].path, folder) == 0)
			return;
	IGNORE_RESULT(landing_add_path(&res->left, &res->n_left, folder, 'M', NULL),
		      "then it is not told");
}

/* It, or a directory above it, is named by a pattern. */
static bool is_named(const struct ignore *patterns, const char *path)
{
	AUTO_FREE char *above = strdup(path);

	if (!above)
		return false;
	if (ignore_match(patterns, path, false) == IGNORE_OUT)
		return true;
	for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
		*slash = '\0';
		if (ignore_match(patterns, above, true) == IGNORE_OUT)
			return true;
	}
	return false;
}

static bool takes(const char *path, void *ctx)
{
	struct promoting *p = ctx;
	size_t len;

	if (!p->with_git && is_git(path, &len)) {
		tell_left(p, path, len);
		return false;
	}
	return (!p->paths || is_named(p->paths, path)) &&
	       (!p->excludes || !is_named(p->excludes, path));
}

/* --- the merged tree -------------------------------------------------------------------- */

static int merge_once(struct promoting *p, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	const struct engine_promote_options *o = p->options->asked;
	const struct merge_options options = {
		.on_conflict = o->on_conflict,
		.style = o->style,
		.label_base = "base",
		.label_ours = "project",
		.label_theirs = p->clone.name ? p->clone.name : "before",
		.take = takes,
		.take_ctx = p,
		.now = p->now,
	};
	int r = batch_begin(p->store, &b, err);

	if (r >= 0)
		r = merge_trees(b, &p->base.root, &p->landing.now.root, &p->theirs_root, &options,
				&p->merge, err);
	if (r >= 0)
		r = store_pin(p->store, OBJECT_TREE, &p->merge.root, err);
	if (r < 0)
		return r;
	p->pinned = p->merge.root;
	return batch_commit(b, BATCH_SAFE, err);
}

static bool conflicts_in_git(const struct promoting *p)
{
	size_t len;

	for (size_t i = 0; i < p->merge.n_conflicts; i++)
		if (is_git(p->merge.conflicts[i].path, &len))
			return true;
	return false;
}

/*
 * A promotion leaves git's own alone; only a rollback changes it, and what that did is taken back with the
 * rest, unless git was used in the same places since.
 */
static int merge_all(struct promoting *p, struct err *err)
{
	int r;

	p->with_git = p->options->undo;
	r = merge_once(p, err);
	if (r < 0 || !p->with_git || !conflicts_in_git(p))
		return r;
	store_unpin(p->store, OBJECT_TREE, &p->pinned);
	p->pinned = (struct object_id){ 0 };
	merge_done(&p->merge);
	p->with_git = false;
	return merge_once(p, err);
}

static char *side_name(const struct merge_side *side, const char *state)
{
	char *name = NULL;

	if (side->path && asprintf(&name, "%s:%s", state, side->path) < 0)
		return NULL;
	return name;
}

static int tell_conflicts(struct promoting *p, struct err *err)
{
	struct engine_promotion *res = &p->result;
	char base[CATALOG_HEX_SIZE], theirs[CATALOG_HEX_SIZE];

	res->conflicts = calloc(p->merge.n_conflicts + 1, sizeof(*res->conflicts));
	if (!res->conflicts)
		return err_nomem(err);
	catalog_id_hex(&p->base.id, base);
	catalog_id_hex(&p->theirs.id, theirs);
	for (size_t i = 0; i < p->merge.n_conflicts; i++) {
		const struct merge_conflict *m = &p->merge.conflicts[i];
		struct engine_conflict *c = &res->conflicts[res->n_conflicts++];

		*c = (struct engine_conflict){
			.path = strdup(m->path),
			.kind = merge_kind_name(m->kind),
			.hunks = m->hunks,
			.settled = m->settled,
			.sides = { side_name(&m->base, base), side_name(&m->ours, "."),
				   side_name(&m->theirs, p->clone.name ? p->clone.name : theirs) },
		};
		if (!c->path)
			return err_nomem(err);
		if (!m->settled)
			res->end = ENGINE_CONFLICTS;
	}
	return 0;
}

/* A directory is told only for its own sake. */
static int tell_changes(struct promoting *p, struct err *err)
{
	struct engine_promotion *res = &p->result;
	const struct engine_list *allow = &p->options->asked->allow;
	int r = 0;

	res->merged = p->merge.n_merged;
	for (size_t i = 0; i < p->merge.n_changes && r >= 0; i++) {
		const struct merge_change *c = &p->merge.changes[i];
		const struct guard_rule *rule =
		    p->guard ? guard_match(p->guard, c->path, c->mode, c->status) : NULL;

		res->changed++;
		r = landing_add_path(&res->paths, &res->n_paths, c->path, c->status, NULL);
		if (r >= 0 && rule && !guard_allowed(c->path, allow->items, allow->n))
			r = landing_add_path(&res->held, &res->n_held, c->path, c->status,
					     rule->name);
	}
	return r < 0 ? err_nomem(err) : 0;
}

static int hold_capable(const struct plan_step *s, void *ctx)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;
	struct promoting *p = ctx;
	struct engine_promotion *res = &p->result;
	const struct engine_list *allow = &p->options->asked->allow;
	struct xattr unused;
	int r;

	if (s->act == PLAN_REMOVE || !S_ISREG(s->after.mode) ||
	    object_id_is_zero(&s->after.xattrs) || guard_allowed(s->path, allow->items, allow->n))
		return 0;
	r = xattrs_get(p->store, &s->after.xattrs, &set, p->err);
	if (r < 0)
		return r;
	if (!xattrs_find(&set, GUARD_CAPABLE_XATTR, strlen(GUARD_CAPABLE_XATTR), &unused))
		return 0;
	r = landing_add_path(&res->held, &res->n_held, s->path, s->act == PLAN_CREATE ? 'A' : 'M',
			     GUARD_CAPABLE);
	return r < 0 ? err_nomem(p->err) : 0;
}

/* What is to be done to the directory; and what only the plan tells of it. */
static int plan_all(struct promoting *p, struct err *err)
{
	const struct plan_options options = { .as_of = p->landing.as_of };
	int r = plan_make(p->store, &p->landing.now.root, &p->merge.root, &options, &p->plan, err);

	p->err = err;
	if (r >= 0 && p->guard)
		r = plan_each(&p->plan, hold_capable, p);
	if (r >= 0 && p->result.n_held > 0 && p->result.end == ENGINE_PROMOTED)
		p->result.end = ENGINE_HELD;
	return r;
}

/* --- landing ---------------------------------------------------------------------------- */

static int fill_after(struct promoting *p, struct snapshot *after, char *message, struct err *err)
{
	struct root root;
	int r = root_get(p->store, &p->merge.root, &root, err);

	if (r < 0)
		return r;
	*after = (struct snapshot){
		.root = p->merge.root,
		.parent = p->landing.newest.id,
		.project = p->project.id,
		.message = message,
		.created = engine_now(),
		.files = root.top.below.files,
		.bytes = root.top.below.bytes + root.in_links.bytes,
	};
	if (after->created <= p->landing.newest.created)
		after->created = p->landing.newest.created + 1;
	return 0;
}

static struct receipt receipt_of(struct promoting *p)
{
	return (struct receipt){
		.kind = p->clone.name ? RECEIPT_PROMOTION : RECEIPT_UNDO,
		.project = p->project.id,
		.before = p->landing.newest.id,
		.base = p->base.id,
		.undoes = p->undoes.id,
		.clone = p->clone.name,
		.checks = p->checks,
	};
}

/* What is to be checked is not on disk yet: a snapshot holds it meanwhile. */
static int hold_for_checks(struct promoting *p, char *message, struct err *err)
{
	struct receipt receipt = receipt_of(p);
	struct snapshot after;
	int r;

	r = fill_after(p, &after, message, err);
	if (r >= 0)
		r = pending_put(p->engine, &after, &receipt, err);
	free(receipt.who);
	if (r >= 0)
		catalog_id_hex(&after.id, p->result.after);
	return r;
}

/* Is it what was checked?  *ret is NULL if it was to be checked by nobody. */
static int find_checked(struct promoting *p, struct pending **ret, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot was = { 0 };
	int r;

	*ret = NULL;
	if (!p->options->checked)
		return 0;
	r = pending_find(p->engine, p->options->checked, ret, err);
	if (r >= 0)
		r = snapshot_get(p->store, pending_snapshot(*ret), &was, err);
	if (r >= 0 && !object_id_equal(&was.root, &p->merge.root))
		p->result.end = ENGINE_MOVED;
	return r;
}

static int land(struct promoting *p, char *before, char *message, struct err *err)
{
	CLEANUP(landed_done) struct landed landed = { 0 };
	struct engine_promotion *res = &p->result;
	struct pending *pending;
	struct snapshot after;
	struct landing_act act = {
		.receipt = receipt_of(p),
		.message = before,
		.after = &after,
		.watch = p->options->asked->watch,
	};
	int r = find_checked(p, &pending, err);

	if (r < 0 || res->end == ENGINE_MOVED)
		return r;
	r = fill_after(p, &after, message, err);
	if (r < 0)
		return r;
	if (pending) {
		after.id = *pending_snapshot(pending);
		act.pending = *pending_receipt(pending);
	}
	r = promote_digest(p->store, &p->plan, res->sha256, err);
	act.receipt.sha256 = res->sha256;
	if (r >= 0)
		r = landing_act(&p->landing, &p->plan, &act, &landed, err);
	res->meanwhile = TAKE_PTR(landed.conflicts);
	res->n_meanwhile = landed.n_conflicts;
	landed.n_conflicts = 0;
	if (res->n_meanwhile > 0)
		res->end = ENGINE_MOVED;
	memcpy(res->id, landed.receipt, sizeof(res->id));
	memcpy(res->before, landed.before, sizeof(res->before));
	if (pending && res->id[0] != '\0')
		pending_landed(pending);
	if (r >= 0 && res->id[0] != '\0')
		catalog_id_hex(&after.id, res->after);
	return r;
}

static int go(struct promoting *p, struct err *err)
{
	AUTO_FREE char *before = NULL, *message = NULL;
	const char *what = p->clone.name ? "promotion of" : "undo of";
	const char *of = p->clone.name ? p->clone.name : p->result.undone;

	if (p->result.end != ENGINE_PROMOTED || p->options->asked->dry_run ||
	    plan_is_empty(&p->plan))
		return 0;
	if (asprintf(&before, "before %s %s", what, of) < 0)
		before = NULL;
	if (asprintf(&message, "%s %s", what, of) < 0)
		message = NULL;
	if (!before || !message)
		return err_nomem(err);
	return p->options->check ? hold_for_checks(p, message, err) : land(p, before, message, err);
}

static int promote(struct promoting *p, struct err *err)
{
	const struct engine_promote_options *o = p->options->asked;
	int r;

	r = p->options->undo ? find_undone(p, err) : find_clone(p, err);
	if (r >= 0)
		r = host_may_read(p->engine->host, p->project.path, err);
	if (r >= 0)
		r = parse_patterns(&o->paths, &p->paths, err);
	if (r >= 0)
		r = parse_patterns(&o->excludes, &p->excludes, err);
	/* What comes back was there before: nobody need name it again. */
	if (r >= 0 && !p->options->undo)
		r = guard_new(p->options->rules, p->options->n_rules, &p->guard, err);
	if (r >= 0)
		r = landing_open(&p->landing, p->engine, &p->project, &o->watch, err);
	if (r >= 0)
		r = merge_all(p, err);
	if (r >= 0)
		r = tell_conflicts(p, err);
	if (r >= 0)
		r = tell_changes(p, err);
	if (r >= 0)
		r = plan_all(p, err);
	return r < 0 ? r : go(p, err);
}

int promote_do(struct engine *e, const struct promote_options *options,
	       struct engine_promotion *ret, int64_t *ret_now, struct err *err)
{
	CLEANUP(promoting_done) struct promoting p = { .engine = e, .options = options };
	const uint64_t start = engine_clock_ms();
	int r = engine_store(e, STORE_WRITE, &p.store, err);

	p.now = options->now ? options->now : engine_now();
	p.checks = options->checks ? strdup(options->checks) : NULL;
	if (r >= 0 && options->checks && !p.checks)
		r = err_nomem(err);
	if (r >= 0)
		r = promote(&p, err);
	if (r < 0)
		return r;
	p.result.dry_run = options->asked->dry_run;
	p.result.clone = p.clone.name ? strdup(p.clone.name) : NULL;
	p.result.project = strdup(p.project.path);
	if (!p.result.project || (p.clone.name && !p.result.clone))
		return err_nomem(err);
	p.result.elapsed_ms = engine_clock_ms() - start;
	*ret_now = p.now;
	*ret = p.result;
	p.result = (struct engine_promotion){ 0 };
	return 0;
}
