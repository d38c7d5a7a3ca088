/*
 * Promotion and undo do the same: they apply the difference of two states to the project.  For a
 * promotion these are the clone's base and the clone now, for an undo the receipt's `after` and
 * `before`.
 */
#include "engine/api/promote.h"
#include "engine/act/events-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cowfs/store/pin.h"
#include "cowfs/store/root.h"
#include "engine/act/clone-base-i.h"
#include "engine/act/deliver-i.h"
#include "engine/act/hold-i.h"
#include "engine/act/promoting-i.h"
#include "engine/act/resolve-i.h"
#include "engine/find/conflicts-i.h"
#include "engine/find/digest-i.h"
#include "engine/find/part-i.h"
#include "engine/find/patterns-i.h"
#include "snapshot/apply/judge.h"

static void promoting_done(struct promoting *p)
{
	const struct object_id *const pinned[] = { &p->pinned, &p->pinned_base, &p->pinned_next,
						   &p->pinned_theirs };

	for (size_t i = 0; i < ARRAY_LEN(pinned); i++)
		if (!object_id_is_zero(pinned[i]))
			store_unpin(p->store, OBJECT_TREE, pinned[i]);
	if (p->landing.task)
		landing_close(&p->landing);
	plan_done(&p->plan);
	merge_done(&p->merge);
	resolve_set_done(&p->decided);
	free(p->checks);
	free(p->said);
	guard_free(p->guard);
	engine_rules_done(&p->rules);
	ignore_free(p->paths);
	ignore_free(p->excludes);
	snapshot_done(&p->base);
	snapshot_done(&p->theirs);
	receipt_done(&p->undoes);
	clone_done(&p->clone);
	project_done(&p->project);
	project_done(&p->target);
	strlist_done(&p->sources);
	strlist_done(&p->names);
	strlist_done(&p->watched);
	strlist_done(&p->named);
	strlist_done(&p->allowed);
	strlist_done(&p->outside);
	engine_promotion_done(&p->result);
}

/* --- what takes part -------------------------------------------------------------------- */

static int pin_base(struct promoting *p, struct err *err)
{
	int r = hold_tree(p->store, &p->base, err);

	if (r >= 0)
		p->pinned_base = p->base.root;
	return r;
}

/* --- the merged tree -------------------------------------------------------------------- */

static int merge_all(struct promoting *p, struct err *err)
{
	const struct engine_promote_options *o = p->options->asked;
	int r = p->clone.name && !deliver_is(p)
		    ? resolve_set_load(p->store, &p->clone, &p->decided, err)
		    : 0;

	p->how = (struct merge_options){
		.on_conflict = o->on_conflict,
		.style = o->style,
		.label_base = "base",
		.label_ours = deliver_is(p) ? "there" : "project",
		.label_theirs = p->clone.name ? "clone" : "before",
		.take = promoting_takes,
		.take_ctx = p,
		/* What lies outside of a part seems new, and is not what something in it was renamed to. */
		.no_renames = deliver_is(p) || p->base.part,
		.now = p->now,
	};
	if (r < 0)
		return r;
	r = resolve_merge(p->store, &p->base.root, &p->landing.now.root, &p->theirs_root, &p->how,
			  &p->decided, &p->merge, err);
	if (r < 0)
		return r;
	r = store_pin(p->store, OBJECT_TREE, &p->merge.root, err);
	if (r < 0)
		return r;
	p->pinned = p->merge.root;
	return r;
}

static int record_conflicts(struct promoting *p, struct err *err)
{
	struct engine_promotion *res = &p->result;
	char base[CATALOG_HEX_SIZE], theirs[CATALOG_HEX_SIZE];
	const struct conflict_names names = {
		.base = catalog_id_hex(&p->base.id, base),
		.ours = ".",
		.theirs = p->clone.name ? p->clone.name : catalog_id_hex(&p->theirs.id, theirs),
	};
	int r =
	    conflicts_tell(&p->merge, &p->decided, &names, &res->conflicts, &res->n_conflicts, err);
	int shown = 0;

	if (r < 0)
		return r;
	if (p->options->asked->with_hunks)
		shown = conflicts_show(p->store, &p->merge, &p->how, res->conflicts, err);
	if (r == 0 || shown < 0)
		return shown;
	res->end = ENGINE_CONFLICTS;
	return p->clone.name && !deliver_is(p) && p->options->remember
		   ? resolve_remember(p->task, &p->clone, p->options->remember, err)
		   : 0;
}

/* A path that the merge left out may change all the same: by a rename, or because it is in the way. */
static bool is_left_out(const char *path, void *ctx)
{
	return !promoting_takes(path, ctx);
}

/* A name outside of the clone's part changes only if the clone made it, not with one inside. */
static int check_part(const struct promoting *p, const char *path, struct err *err)
{
	/* Elsewhere the names are others (deliver.c). */
	int r = deliver_is(p) || part_has(p->base.part, path)
		    ? 1
		    : part_is_in(p->store, &p->theirs_root, path, err);

	if (r != 0)
		return r < 0 ? r : 0;
	return err_set(err, -ECANCELED,
		       "nothing is promoted: '%.80s' is outside of '%.60s' and a second name of a "
		       "file in it; make it a file of its own first",
		       path, p->base.part);
}

static int record_step(const struct judgement *it, void *ctx)
{
	struct promoting *p = ctx;
	struct engine_promotion *res = &p->result;
	const char *path = it->step->path, *rule = it->rule ? it->rule->name : NULL;
	int r = check_part(p, path, p->err);

	if (r < 0)
		return r;
	if (plan_counts(&p->plan, it->step)) {
		res->changed++;
		r = landing_add_note(&res->paths, &res->n_paths, path, it->status, NULL,
				     S_ISLNK(it->step->after.mode) ? it->detail : NULL);
	}
	if (r < 0)
		return err_nomem(p->err);
	if (rule && it->rule->level == GUARD_HOLD)
		r = landing_add_note(&res->held, &res->n_held, path, it->status, rule, it->detail);
	else if (rule)
		r = landing_add_note(&res->warned, &res->n_warned, path, it->status, rule,
				     it->detail);
	return r < 0 ? err_nomem(p->err) : 0;
}

static int record_group(const struct plan_step *s, void *ctx)
{
	struct promoting *p = ctx;
	struct engine_promotion *res = &p->result;
	const char status = s->act == PLAN_CREATE ? 'A' : 'M';

	return landing_add_note(&res->warned, &res->n_warned, s->path, status, GUARD_GROUP, NULL) <
		       0
		   ? err_nomem(p->err)
		   : 0;
}

static struct engine_list allowed(const struct promoting *p)
{
	return p->options->asked->root
		   ? (struct engine_list){ (const char *const *)p->allowed.list, p->allowed.n }
		   : p->options->asked->allow;
}

static int plan_all(struct promoting *p, struct err *err)
{
	AUTO_FREE char *mount = p->clone.name ? live_path(p->task->host, p->clone.name) : NULL;
	const struct plan_options options = { .as_of = p->landing.as_of,
					      .leave = p->landing.leave,
					      .n_leave = p->landing.now.unread.n,
					      .leave_unseen = true };
	const struct engine_list allow = allowed(p);
	const struct judge_options guard = {
		.guard = p->guard,
		.top = deliver_is(p) ? p->target.path : p->project.path,
		.elsewhere = deliver_is(p),
		.system = p->options->asked->root,
		.outside = (const char *const *)p->outside.list,
		.n_outside = p->outside.n,
		.mount = mount,
		.allow = allow.items,
		.n_allow = allow.n,
		.left_out = is_left_out,
		.left_out_ctx = p,
	};
	struct engine_promotion *res = &p->result;
	int r = plan_make(p->store, &p->landing.now.root, &p->merge.root, &options, &p->plan, err);

	p->err = err;
	res->merged = p->merge.n_merged;
	if (r < 0)
		return r;
	r = judge_plan(p->store, &p->plan, &guard, record_step, p, err);
	if (r < 0)
		return r;
	r = plan_fit_groups(&p->plan, guard.top, record_group, p, err);
	if (r < 0)
		return r;
	if (res->n_held > 0 && res->end == ENGINE_PROMOTED)
		res->end = ENGINE_HELD;
	digest_outline(&p->plan, res->plan);
	if (p->options->asked->plan && strcmp(p->options->asked->plan, res->plan) != 0)
		return err_set(err, -ESTALE,
			       "what would change in '%s' is not what was shown: look again",
			       guard.top);
	return r;
}

/* --- landing ---------------------------------------------------------------------------- */

static int fill_after(struct promoting *p, const struct object_id *tree, struct snapshot *after,
		      char *message, struct err *err)
{
	struct root root;
	int r = root_get(p->store, tree, &root, err);

	if (r < 0)
		return r;
	*after = (struct snapshot){
		.root = *tree,
		.parent = p->landing.newest.id,
		.project = p->project.id,
		.message = message,
		.lacks = p->landing.lacking,
		.created = engine_now(),
		.files = root.top.below.files,
		.bytes = root.top.below.bytes + root.in_links.bytes,
		/* A user wants what was promoted, but not what was once rolled away from. */
		.made = p->with_git ? SNAPSHOT_MADE_AUTOMATICALLY : SNAPSHOT_MADE_BY_USER,
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
		.target = p->target.id,
		.clone = p->clone.name,
		.checks = p->checks,
	};
}

/* What the checks run on: the merged project, or the clone that results are taken from. */
static const struct object_id *tree_to_check(const struct promoting *p)
{
	return deliver_is(p) ? &p->whole : &p->merge.root;
}

/* The result to check is not on disk yet, so a snapshot holds it. */
static int hold_for_checks(struct promoting *p, char *message, struct err *err)
{
	struct receipt receipt = receipt_of(p);
	struct snapshot after;
	int r = fill_after(p, tree_to_check(p), &after, message, err);

	if (r < 0)
		return r;
	r = pending_promotion_put(p->task, &after, &receipt, err);
	free(receipt.who);
	if (r < 0)
		return r;
	catalog_id_hex(&after.id, p->result.after);
	return r;
}

/* Compare the merge with what was checked.  *ret is NULL if there were no checks. */
static int find_checked(struct promoting *p, struct pending_promotion **ret, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot was = { 0 };
	int r;

	*ret = NULL;
	if (!p->options->checked)
		return 0;
	r = pending_promotion_find(p->task, p->options->checked, ret, err);
	if (r < 0)
		return r;
	r = snapshot_get(p->store, pending_promotion_snapshot(*ret), &was, err);
	if (r < 0)
		return r;
	if (!object_id_equal(&was.root, tree_to_check(p)))
		p->result.end = ENGINE_MOVED;
	return r;
}

static int land(struct promoting *p, char *before, char *message, struct err *err)
{
	CLEANUP(landed_done) struct landed landed = { 0 };
	struct engine_promotion *res = &p->result;
	struct pending_promotion *pending;
	struct snapshot after, base;
	struct landing_act act = {
		.receipt = receipt_of(p),
		.message = before,
		.after = &after,
		.watch = p->options->asked->watch,
	};
	int r = find_checked(p, &pending, err);

	if (r < 0 || res->end == ENGINE_MOVED)
		return r;
	r = deliver_act(p, &act, err);
	if (r < 0)
		return r;
	r = fill_after(p, &p->merge.root, &after, message, err);
	if (r < 0)
		return r;
	if (p->clone.name && !deliver_is(p)) {
		r = promoting_next_base(p, &base, message, err);
		act.base = &base;
	}
	if (r < 0)
		return r;
	if (pending && !deliver_is(p)) {
		after.id = *pending_promotion_snapshot(pending);
		act.pending = *pending_promotion_receipt(pending);
	}
	r = digest_sum_rest(p->store, &p->plan, err);
	if (r < 0)
		return r;
	r = landing_act(&p->landing, &p->plan, &act, &landed, err);
	res->meanwhile = TAKE_PTR(landed.conflicts);
	res->n_meanwhile = landed.n_conflicts;
	landed.n_conflicts = 0;
	if (res->n_meanwhile > 0)
		res->end = ENGINE_MOVED;
	memcpy(res->id, landed.receipt, sizeof(res->id));
	memcpy(res->before, landed.before, sizeof(res->before));
	memcpy(res->sha256, landed.sha256, sizeof(res->sha256));
	if (pending && !deliver_is(p) && res->id[0] != '\0')
		pending_promotion_landed(pending);
	if (r < 0)
		return r;
	if (res->id[0] != '\0')
		catalog_id_hex(&after.id, res->after);
	return r;
}

static int go(struct promoting *p, struct err *err)
{
	AUTO_FREE char *before = NULL, *message = NULL;
	const char *what = p->clone.name ? "promotion of" : "undo of";
	const char *of = p->clone.name ? p->clone.name : p->result.undone;

	if (p->result.end != ENGINE_PROMOTED || p->options->asked->dry_run)
		return 0;
	if (p->options->undo && plan_is_empty(&p->plan)) /* perhaps somebody undid it by hand */
		return receipt_undone(p->store, &p->undoes.id, err);
	/* Changed times alone are no change, and give an undo nothing to do. */
	if (!p->options->undo && plan_count(&p->plan) == 0)
		return promoting_follow(p, err);
	before = text_format("before %s %s", what, of);
	message = text_format("%s %s", what, of);
	if (!before || !message)
		return err_nomem(err);
	return p->options->check ? hold_for_checks(p, message, err) : land(p, before, message, err);
}

/* Which paths take part, and what the guard says to them. */
static int read_rules(struct promoting *p, struct err *err)
{
	const struct engine_promote_options *o = p->options->asked;
	struct engine_list paths = o->paths;
	int r = 0;

	if (o->root) {
		r = promoting_read_root(p, err);
		paths = (struct engine_list){ (const char *const *)p->named.list, p->named.n };
	}
	if (r >= 0 && !deliver_is(p))
		r = patterns_parse(&paths, &p->paths, err);
	if (r < 0)
		return r;
	r = patterns_parse(&o->excludes, &p->excludes, err);
	/* An undo only restores what was there before, so the guard need not hold it. */
	if (r < 0 || p->options->undo)
		return r;
	return o->root ? rules_guard_system(p->options->rules, p->project.path, &p->rules,
					    &p->guard, err)
		       : rules_guard(p->options->rules, p->project.path, &p->rules, &p->guard, err);
}

/* What is promoted, where to, which of its paths, and the rules that guard them. */
static int find_parts(struct promoting *p, struct err *err)
{
	int r = p->options->undo ? promoting_find_project(p, err) : promoting_find_clone(p, err);

	if (r < 0)
		return r;
	r = task_may_read(p->task, p->project.path, err);
	if (r < 0)
		return r;
	r = deliver_find(p, err);
	if (r < 0)
		return r;
	p->whole = p->theirs_root;
	return read_rules(p, err);
}

/* Nobody has all of a machine captured only to hear that there is nothing to take back. */
static int find_early(struct promoting *p, struct err *err)
{
	CLEANUP(receipt_done) struct receipt of = { 0 };

	return receipt_find(p->store, &p->project, p->options->receipt, &of, err);
}

static int promote(struct promoting *p, struct err *err)
{
	const struct engine_promote_options *o = p->options->asked;
	struct survey_options survey = { .skip_unreadable = o->skip_unreadable,
					 .watch = o->watch,
					 .machine = o->root };
	int r = find_parts(p, err);

	if (r >= 0 && p->options->undo && o->root)
		r = find_early(p, err);
	if (r < 0)
		return r;
	survey.only = deliver_is(p) ? &p->watched : NULL;
	survey.place = deliver_is(p) ? &p->place : NULL;
	r = landing_open(&p->landing, p->task, deliver_is(p) ? &p->target : &p->project, &survey,
			 err);
	r = r < 0 ? r : landing_check_unread(&p->landing, err);
	if (r < 0)
		return r;
	if (p->options->undo)
		r = promoting_find_undone(p, err);
	if (r >= 0 && p->options->undo)
		r = promoting_check_unread(p, err);
	if (r < 0)
		return r;
	if (deliver_is(p))
		r = deliver_trees(p, err);
	if (r < 0)
		return r;
	if (!deliver_is(p) || p->options->undo)
		r = pin_base(p, err);
	if (r < 0)
		return r;
	r = merge_all(p, err);
	if (r < 0)
		return r;
	r = record_conflicts(p, err);
	if (r < 0)
		return r;
	r = plan_all(p, err);
	return r < 0 ? r : go(p, err);
}

int promote_do(struct task *task, const struct promote_options *options,
	       struct engine_promotion *ret, int64_t *ret_now, struct err *err)
{
	CLEANUP(promoting_done) struct promoting p = { .task = task, .options = options };
	const uint64_t start = engine_clock_ms();
	int r = engine_store(&task->engine, STORE_WRITE, &p.store, err);

	p.now = options->now ? options->now : engine_now();
	p.checks = options->checks ? strdup(options->checks) : NULL;
	if (r < 0)
		return r;
	if (options->checks && !p.checks)
		return err_nomem(err);
	clone_base_settle(task->host);
	warm_clone_rest(task->host->warm_clone);
	r = promote(&p, err);
	warm_clone_rested(task->host->warm_clone);
	if (r < 0)
		return r;
	/* Holding one turn, never take a second. */
	if (p.landing.task)
		landing_close(&p.landing);
	clone_base_settle(task->host);
	if (!catalog_id_is_zero(&p.followed.project))
		clone_base_move(task->host, &p.clone, &p.followed);
	if (p.clone.name && p.result.id[0] != '\0')
		resolve_used(task, &p.clone, &p.decided);
	p.result.dry_run = options->asked->dry_run;
	p.result.clone = p.clone.name ? strdup(p.clone.name) : NULL;
	p.result.project = strdup(p.project.path);
	p.result.to = deliver_is(&p) ? strdup(p.target.path) : NULL;
	if (!p.result.project || (p.clone.name && !p.result.clone) ||
	    (deliver_is(&p) && !p.result.to))
		return err_nomem(err);
	event_promoted(task, &p.result);
	p.result.elapsed_ms = engine_clock_ms() - start;
	*ret_now = p.now;
	*ret = TAKE_STRUCT(p.result);
	return 0;
}
