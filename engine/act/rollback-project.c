/*
 * rollback-project.c - roll back a project: the guard judges it, then it lands like a promotion.
 */
#include <errno.h>
#include <string.h>

#include "cowfs/store/root.h"
#include "engine/act/land-i.h"
#include "engine/act/rolling-i.h"
#include "engine/find/part-i.h"
#include "engine/find/rules-i.h"
#include "snapshot/apply/judge.h"

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

	if (!rolling_is_foreign(g))
		return 0;
	r = rules_guard(g->options->rules, g->project.path, &rules, &guard, err);
	if (r < 0)
		return r;
	options.guard = guard;
	r = judge_plan(g->store, &g->plan, &options, add_judgement, &g->result, err);
	return r == -ENOMEM ? err_nomem(err) : r;
}

/* A step that would change what the part says nothing of. */
struct beyond {
	const char *part;
	struct err *err;
};

static int check_step(const struct plan_step *s, void *ctx)
{
	const struct beyond *b = ctx;

	if (part_has(b->part, s->path))
		return 0;
	return err_set(b->err, -ECANCELED,
		       "nothing is rolled back: '%.80s' is outside of '%.60s' and a second name of "
		       "a file in it; make it a file of its own first",
		       s->path, b->part);
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
		.message = g->saved.message + strlen(ROLLING_BEFORE),
		.files = root.top.below.files,
		.bytes = root.top.below.bytes + root.in_links.bytes,
		.made = SNAPSHOT_MADE_AUTOMATICALLY,
	};
	return 0;
}

/* 1 if the project has changes that its asker does not know. */
static int is_edited(struct rolling *g, const struct captured *now, int64_t as_of, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot since = { 0 };
	int r;

	if (!g->options->since || now->stats.files == 0)
		return 0;
	r = snapshot_find(g->store, g->options->since, &since, err);
	if (r >= 0)
		r = rolling_differs(g, &since.root, as_of, err);
	return r <= 0 ? r : rolling_differs(g, &g->to.root, as_of, err);
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
	int r = rolling_compare(g, landing->as_of, err);

	if (r >= 0)
		r = plan_each(&g->plan, check_step, &(struct beyond){ g->to.part, err });
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

int rolling_move_project(struct rolling *g, struct err *err)
{
	CLEANUP(landing_close) struct landing landing;
	const struct survey_options options = {
		.skip_unreadable = g->options->skip_unreadable,
		.watch = g->options->watch,
	};
	int r = landing_open(&landing, g->task, &g->project, &options, err);

	g->now = landing.now.root;
	g->unread = &landing.now.unread;
	g->lacks = g->to.lacks;
	if (r >= 0 && g->options->remember)
		r = landing_remember(&landing, err);
	r = r < 0 ? r : is_edited(g, &landing.now, landing.as_of, err);
	g->result.edited = r == 1;
	r = r == 0 ? change_project(g, &landing, err) : r;
	g->unread = NULL;
	return r < 0 ? r : 0;
}
