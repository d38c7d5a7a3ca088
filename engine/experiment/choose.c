/*
 * A promotion happens at most once. Before the request, the state names the arm and the newest
 * receipt of the project at that time. A process that resumes first looks for a later receipt of
 * that arm's clone, once a promotion that is still in progress is over.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/api/diff.h"
#include "engine/api/receipts.h"
#include "engine/experiment/experiment-i.h"

/* Receipts are those of the project around the engine's directory, which may be another one now. */
static int load_receipts(struct work *w, struct engine_receipts *ret, struct err *err)
{
	const struct engine_options options = { .dir = w->x->project,
						.store = w->engine->store_path };
	CLEANUP(engine_close_p) struct engine *there = NULL;
	int r = engine_open(&options, &there, err);

	return r < 0 ? r : engine_receipts(there, ret, err);
}

/* The receipt of that clone's promotion that came after the one that the state names; "": none. */
static int find_receipt(struct work *w, const char *clone, char ret[ENGINE_ID_SIZE],
			struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	int r = load_receipts(w, &all, err);

	ret[0] = '\0';
	for (size_t i = 0; r >= 0 && i < all.n; i++) {
		const struct engine_receipt *one = &all.list[i];

		if (strcmp(one->id, w->x->receipt) == 0)
			break;
		if (one->kind == ENGINE_RECEIPT_PROMOTION && one->clone &&
		    strcmp(one->clone, clone) == 0)
			memcpy(ret, one->id, ENGINE_ID_SIZE);
	}
	return r;
}

/* --- one arm ------------------------------------------------------------------------------- */

static int begin(struct work *w, const struct engine_arm *arm, struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	int r = load_receipts(w, &all, err);

	if (r < 0)
		return r;
	memcpy(w->x->receipt, all.n > 0 ? all.list[0].id : "", all.n > 0 ? ENGINE_ID_SIZE : 1);
	free(w->x->promoting);
	w->x->promoting = strdup(arm->name);
	if (!w->x->promoting)
		return err_nomem(err);
	w->x->state = ENGINE_EXPERIMENT_PROMOTING;
	return work_save(w, NULL, err);
}

static int note(struct work *w, struct engine_arm *arm, const char *receipt, struct err *err)
{
	struct engine_experiment *x = w->x;
	int r;

	free(x->promoting);
	x->promoting = NULL;
	if (*receipt == '\0')
		return work_save(w, arm, err);
	memcpy(arm->promotion, receipt, sizeof(arm->promotion));
	if (!VEC_ONE_MORE(x->promoted, x->n_promoted))
		return err_nomem(err);
	x->promoted[x->n_promoted] = strdup(arm->name);
	if (!x->promoted[x->n_promoted++])
		return err_nomem(err);
	r = work_save(w, arm, err);
	if (r >= 0)
		work_log_event(w, "experiment-promoted", arm);
	return r;
}

static const char *obstacle(enum engine_promote_end end)
{
	switch (end) {
	case ENGINE_PROMOTED:
		break;
	case ENGINE_CONFLICTS:
		return "it conflicts with the project";
	case ENGINE_HELD:
		return "the guard holds it";
	case ENGINE_CHECK_FAILED:
		return "a check failed on the merged tree";
	case ENGINE_MOVED:
		return "the project changed meanwhile";
	}
	return NULL;
}

#define PATHS_NAMED 5 /* of those that conflict */

/* "not promoted: it conflicts with the project in a, b and 3 more paths" */
static int explain_conflicts(const struct engine_promotion *p, struct engine_arm *arm,
			     struct err *err)
{
	CLEANUP(buf_done) struct buf paths = BUF_INIT;
	size_t named = 0;
	int r = 0;

	for (; named < p->n_conflicts && named < PATHS_NAMED && r >= 0; named++)
		r = buf_printf(&paths, "%s%s", named > 0 ? ", " : "",
			       *p->conflicts[named].path != '\0' ? p->conflicts[named].path : ".");
	if (r >= 0 && named < p->n_conflicts)
		r = buf_printf(&paths, " and %zu more", p->n_conflicts - named);
	if (r < 0 || !buf_str(&paths))
		return err_nomem(err);
	return text_set(&arm->why, err, "not promoted: %s in %s", obstacle(p->end),
			buf_str(&paths));
}

/* Of what the experiment itself promotes; a user who asks for an arm later gets an answer at once. */
static int explain(struct work *w, struct engine_arm *arm, struct err *err)
{
	if (w->x->ended != 0)
		return 0;
	w->x->outcome = w->promotion->end;
	if (w->promotion->end == ENGINE_PROMOTED)
		return 0;
	if (w->promotion->end == ENGINE_CONFLICTS && w->promotion->n_conflicts > 0)
		return explain_conflicts(w->promotion, arm, err);
	return text_set(&arm->why, err, "not promoted: %s", obstacle(w->promotion->end));
}

static int promote(struct work *w, struct engine_arm *arm, struct err *err)
{
	const struct engine_experiment *x = w->x;
	const struct engine_promote_options options = {
		.clone = arm->clone,
		.checks = { (const char *const *)x->checks, x->n_checks },
		.allow = { (const char *const *)x->allow, x->n_allow },
		.profile = arm->profile ? arm->profile : x->profile,
		.limits = &x->limits,
		.plan = w->options->plan,
		.watch = w->options->watch,
		.checking = w->options->checking,
		.checking_ctx = w->options->ctx,
		.ret_signal = w->options->ret_signal,
	};
	struct engine_promotion *p = w->promotion;
	char receipt[ENGINE_ID_SIZE];
	int r;

	engine_promotion_done(p);
	r = engine_promote(w->engine, &options, p, err);
	if (r < 0)
		return err_wrap(err, r, "promoting arm '%s'", arm->name);
	memcpy(receipt, p->id, sizeof(receipt));
	if (p->end == ENGINE_PROMOTED && *receipt == '\0')
		r = find_receipt(w, arm->clone, receipt, err);
	if (r >= 0)
		r = explain(w, arm, err);
	return r < 0 ? r : note(w, arm, p->end == ENGINE_PROMOTED ? receipt : "", err);
}

static int see_change(const struct engine_state *from, const struct engine_state *to,
		      const struct delta *delta, void *ctx, struct err *err)
{
	*(bool *)ctx = delta->n_files > 0 || delta->n_notes > 0;
	return 0;
}

/* What is promoted is the clone as it is now; it must be what checks and score have seen. */
static int check_unchanged(struct work *w, const struct engine_arm *arm, struct err *err)
{
	bool changed = false;
	const struct engine_diff_sink sink = { .begin = see_change, .ctx = &changed };
	const struct engine_diff_options options = {
		.a = arm_left(w, arm),
		.b = arm->clone,
		.no_renames = true,
		.watch = w->options->watch,
	};
	int r = engine_diff(w->engine, &options, &sink, err);

	if (r < 0 || !changed)
		return r;
	return err_set(err, -ECANCELED, "clone '%s' was changed after arm '%s' was judged",
		       arm->clone, arm->name);
}

/* It failed before anything could reach the project. */
static int give_up(struct work *w, struct err *err)
{
	free(w->x->promoting);
	w->x->promoting = NULL;
	if (w->x->ended != 0)
		w->x->state = ENGINE_EXPERIMENT_ENDED;
	return work_save(w, NULL, err);
}

int choose_arm(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r = check_unchanged(w, arm, err);

	if (r < 0)
		return r;
	r = begin(w, arm, err);
	if (r < 0)
		return r;
	r = promote(w, arm, err);
	if (r == -ENOENT || r == -EINVAL || r == -ECANCELED || r == -EBUSY || r == -ESTALE)
		IGNORE_RESULT(give_up(w, NULL), "the failure counts");
	return r;
}

/* A clone that is gone cannot be promoted after a resume either, so that is what came of it. */
static int choose_one(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r = choose_arm(w, arm, err);

	if (r != -ENOENT || engine_has_clone(w->engine, arm->clone))
		return r;
	arm->has_clone = false;
	return text_set(&arm->why, err, "not promoted: its clone was removed");
}

/* No other command has the project's turn once this returns, so a landing is over. */
static int await_landing(struct work *w, const struct engine_arm *arm, struct err *err)
{
	const struct engine_promote_options options = { .clone = arm->clone, .dry_run = true };
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	int r = engine_promote(w->engine, &options, &p, err);

	return r == -ENOENT ? 0 : r;
}

int choose_recover(struct work *w, struct err *err)
{
	struct engine_arm *arm =
	    w->x->promoting ? engine_experiment_arm(w->x, w->x->promoting) : NULL;
	char receipt[ENGINE_ID_SIZE];
	int r;

	if (!arm)
		return 0;
	r = await_landing(w, arm, err);
	if (r >= 0)
		r = find_receipt(w, arm->clone, receipt, err);
	if (r < 0)
		return r;
	if (w->x->ended != 0)
		w->x->state = ENGINE_EXPERIMENT_ENDED;
	return note(w, arm, receipt, err);
}

/* --- which --------------------------------------------------------------------------------- */

/* Each that can be, one after the other; each is checked on top of those before it. */
static int choose_compatible(struct work *w, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < w->x->n_arms && r >= 0; i++) {
		struct engine_arm *arm = &w->x->arms[i];

		if (arm->state != ENGINE_ARM_PASSED || *arm->promotion != '\0' || !arm->has_clone)
			continue;
		r = choose_one(w, arm, err);
		if (r == -ECANCELED)
			r = text_set(&arm->why, err,
				     "not promoted: its clone changed after it was judged");
	}
	return r;
}

int choose_arms(struct work *w, struct err *err)
{
	struct engine_experiment *x = w->x;
	struct engine_arm *winner = x->winner ? engine_experiment_arm(x, x->winner) : NULL;

	if (x->promote == ENGINE_PROMOTE_COMPATIBLE)
		return choose_compatible(w, err);
	if (x->promote != ENGINE_PROMOTE_BEST || !winner || x->n_promoted > 0)
		return 0;
	return choose_one(w, winner, err);
}
