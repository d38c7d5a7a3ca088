/*
 * A landing happens at most once. Before the request, the state names the clone, the target, and
 * the newest receipt of the target at that time. The next process that takes the change first looks
 * for a later receipt of that clone, once a promotion that is still in progress is over.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "engine/api/receipts.h"
#include "engine/pipeline/vehicle-i.h"

/* --- may it enter? ------------------------------------------------------------------------- */

static int copy_names(char ***to, size_t *n_to, char *const *list, size_t n, struct err *err)
{
	texts_free(*to, *n_to);
	*to = NULL;
	*n_to = 0;
	return texts_add_all(to, n_to, list, n, err);
}

/* The paths that the guard holds now: an approval lets these pass, and no others. */
static int note_held(struct engine_change *c, const struct engine_promotion *p, struct err *err)
{
	CLEANUP(strlist_done) struct strlist held = { 0 };

	for (size_t i = 0; i < p->n_held; i++)
		if (strlist_add(&held, p->held[i].path) < 0)
			return err_nomem(err);
	return copy_names(&c->held, &c->n_held, held.list, held.n, err);
}

static int wait_for_person(struct shipping *s, const struct engine_stage *stage,
			   char *const *approvers, const char *why, struct err *err)
{
	size_t n = 0;
	int r;

	while (approvers && approvers[n])
		n++;
	r = copy_names(&s->change->approvers, &s->change->n_approvers,
		       stage->n_approvers > 0 ? stage->approvers : approvers,
		       stage->n_approvers > 0 ? stage->n_approvers : n, err);
	if (r < 0)
		return r;
	r = text_set(&s->change->why, err, "%s", why);
	if (r < 0)
		return r;
	s->change->state = ENGINE_CHANGE_WAITING;
	return shipping_save(s, "change-waiting", err);
}

static int find_held(struct shipping *s, struct engine *there, const char *clone, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	const struct engine_promote_options dry = {
		.clone = clone,
		.state = s->change->state_id,
		.dry_run = true,
		.watch = s->options->watch,
	};
	int r = engine_promote(there, &dry, &p, err);

	return r < 0 ? r : note_held(s->change, &p, err);
}

static int judged(struct shipping *s, const struct engine_stage *stage,
		  const struct engine_verdict *v, struct err *err)
{
	const struct engine_policy_step *rule = engine_verdict_step(v);
	const bool person = strcmp(s->who, "person") == 0;
	const bool always = strcmp(stage->approve, "always") == 0;
	char why[400];

	if (v->facts.conflicts > 0) {
		snprintf(why, sizeof(why), "%" PRIu64 " paths conflict with '%.200s'",
			 v->facts.conflicts, stage->target);
		return shipping_hold(s, "conflict", why, err);
	}
	if (v->then == ENGINE_MAY_NOT) {
		snprintf(why, sizeof(why), "the rule '%.200s' refuses it", rule ? rule->rule : "");
		return shipping_hold(s, "rule", why, err);
	}
	/* Where no rule fits, typing `ship` is the approval of a person. */
	if (s->change->approved_by ||
	    (!always && (v->then == ENGINE_MAY_LAND || (person && !rule && v->facts.held == 0))))
		return 1;
	if (always)
		snprintf(why, sizeof(why), "this stage always asks for a person");
	else if (rule)
		snprintf(why, sizeof(why), "the rule '%.200s' asks for a person", rule->rule);
	else if (v->facts.held > 0)
		snprintf(why, sizeof(why), "the guard holds %" PRIu64 " paths", v->facts.held);
	else
		snprintf(why, sizeof(why), "no rule of policy.yaml lets it land by itself");
	return wait_for_person(s, stage, v->approvers, why, err);
}

/* Checks that a stage has pass before it lands, so a rule may count on them. */
static bool is_tested(const struct engine_change *c, const struct engine_stage *stage)
{
	return VEC_HAS(one, c->passed, c->n_passed, one->n_checks > 0) || stage->n_checks > 0;
}

int stage_may_enter(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	CLEANUP(vehicle_done) struct vehicle v = VEHICLE_INIT;
	CLEANUP(engine_verdict_done) struct engine_verdict verdict = { 0 };
	struct engine_policy_options options = {
		.facts = { .subject = { (const char *const *)s->change->subject,
					s->change->n_subject },
			   .ran_in = s->change->clone,
			   .ran_state = s->change->state_id,
			   .watch = s->options->watch },
		.who = s->who,
		.tests = is_tested(s->change, stage) ? "pass" : NULL,
		.now = pipeline_now(),
	};
	int r;

	if (!stage->target && strcmp(stage->approve, "always") == 0 && !s->change->approved_by)
		return wait_for_person(s, stage, NULL, "this stage always asks for a person", err);
	if (strcmp(stage->approve, "never") == 0 || !stage->target)
		return 1;
	r = vehicle_make(s, stage->target, &v, err);
	if (r < 0)
		return r;
	options.facts.clone = v.name;
	r = engine_policy_explain(v.engine, &options, &verdict, err);
	if (r < 0)
		return r;
	r = text_set(&s->change->risk, err, "%s", engine_risk_name(verdict.facts.risk));
	if (r >= 0 && !s->change->approved_by)
		r = find_held(s, v.engine, v.name, err);
	return r < 0 ? r : judged(s, stage, &verdict, err);
}

/* --- it passed ----------------------------------------------------------------------------- */

static int add_passed(struct shipping *s, const struct engine_stage *stage, const char *receipt,
		      const char *sha256, struct engine_checked **checks, size_t *n_checks,
		      struct err *err)
{
	struct engine_change *c = s->change;
	struct engine_passed *p;
	int r;

	if (!VEC_ONE_MORE(c->passed, c->n_passed))
		return err_nomem(err);
	p = &c->passed[c->n_passed++];
	*p = (struct engine_passed){
		.stage = strdup(stage->name),
		.target = stage->target ? strdup(stage->target) : NULL,
		.checks = TAKE_PTR(*checks),
		.n_checks = *n_checks,
		.approved_by = TAKE_PTR(c->approved_by),
		.approved_uid = c->approved_uid,
		.reason = TAKE_PTR(c->reason),
		.passed = pipeline_now(),
	};
	*n_checks = 0;
	/* They were asked about this stage. */
	change_forget_approvers(c);
	if (!p->stage || (stage->target && !p->target))
		return err_nomem(err);
	snprintf(p->receipt, sizeof(p->receipt), "%s", receipt);
	snprintf(p->sha256, sizeof(p->sha256), "%s", sha256);
	memcpy(p->commit, c->landing_commit, sizeof(p->commit));
	*c->landing_commit = '\0';
	r = soak_begin(p, stage, err);
	if (r < 0)
		return r;
	verify_link(c, c->n_passed - 1, p->link);
	c->state = stage->soak_ms > 0 ? ENGINE_CHANGE_SOAKING : ENGINE_CHANGE_READY;
	free(c->why);
	free(c->obstacle);
	c->why = c->obstacle = NULL;
	change_unapprove(c);
	free(c->landing_clone);
	free(c->landing_target);
	c->landing_clone = c->landing_target = NULL;
	change_unsettle(c);
	r = shipping_save(s, "change-passed", err);
	return r < 0 ? r : 1;
}

/* --- checks without a target --------------------------------------------------------------- */

/* A state, and the path at which its checks see it. */
struct checked_state {
	struct engine *engine;
	const char *state, *dir;
};

static int run_check(struct shipping *s, const struct checked_state *of, const char *command,
		     struct engine_checked *ret, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	struct engine_run_options options = {
		.from = of->state,
		.argv = argv,
		.workdir = of->dir,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
	};
	int r;

	engine_run_limits_init(&options.limits);
	if (s->options->checking)
		s->options->checking(command, NULL, s->options->ctx);
	r = engine_run(of->engine, &options, &run, err);
	if (r < 0)
		return err_wrap(err, r, "check '%.100s'", command);
	if (s->options->checking)
		s->options->checking(command, &run, s->options->ctx);
	*ret = (struct engine_checked){ .command = strdup(command),
					.exit_code = run.exit_code,
					.duration_ms = run.duration_ms };
	memcpy(ret->run, run.id, sizeof(ret->run));
	return ret->command ? 0 : err_nomem(err);
}

static int hold_failed(struct shipping *s, const struct engine_checked *c, struct err *err)
{
	char why[300];

	snprintf(why, sizeof(why), "the check '%.150s' failed with %d (snap logs %s)", c->command,
		 c->exit_code, c->run);
	return shipping_hold(s, "check", why, err);
}

static int check_state(struct shipping *s, const struct engine_stage *stage,
		       const struct checked_state *of, struct err *err)
{
	struct engine_checked *checks = calloc(stage->n_checks + 1, sizeof(*checks));
	size_t n = 0;
	int r = checks ? 0 : err_nomem(err);

	while (r >= 0 && n < stage->n_checks && (n == 0 || checks[n - 1].exit_code == 0)) {
		r = run_check(s, of, stage->checks[n], &checks[n], err);
		n += r >= 0;
	}
	if (r >= 0 && n > 0 && checks[n - 1].exit_code != 0)
		r = hold_failed(s, &checks[n - 1], err);
	else if (r >= 0)
		return add_passed(s, stage, "", "", &checks, &n, err);
	VEC_FREE(it, checks, n, free(it->command));
	return r;
}

static int check_alone(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	CLEANUP(engine_close_p) struct engine *e = NULL;
	struct checked_state of = { .state = s->change->state_id, .dir = s->change->project };
	int r = pipeline_engine(s->engine, of.dir, &e, err);

	of.engine = e;
	return r < 0 ? r : check_state(s, stage, &of, err);
}

/* The target as it is now. */
static int check_target(struct shipping *s, const struct engine_stage *stage, const char *dir,
			struct err *err)
{
	CLEANUP(engine_close_p) struct engine *e = NULL;
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	const struct engine_take_options options = { .dir = dir, .automatic = true };
	struct checked_state of = { .dir = dir };
	int r = pipeline_engine(s->engine, dir, &e, err);

	if (r < 0)
		return r;
	r = engine_take(e, &options, &taken, err);
	if (r < 0)
		return r;
	of.engine = e;
	of.state = taken.snapshot.id;
	return check_state(s, stage, &of, err);
}

/* --- landing ------------------------------------------------------------------------------- */

/* The receipts of the clone that are there already.  Not the newest one: somebody may set the clock back. */
static int note_known(struct engine_change *c, struct engine *there, const char *clone,
		      struct err *err)
{
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	CLEANUP(strlist_done) struct strlist known = { 0 };
	int r = engine_receipts(there, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++)
		if (all.list[i].clone && strcmp(all.list[i].clone, clone) == 0 &&
		    strlist_add(&known, all.list[i].id) < 0)
			r = err_nomem(err);
	return r < 0 ? r
		     : copy_names(&c->landing_known, &c->n_landing_known, known.list, known.n, err);
}

static int intend(struct shipping *s, const struct engine_stage *stage, struct engine *there,
		  const char *clone, struct err *err)
{
	struct engine_change *c = s->change;
	int r = note_known(c, there, clone, err);

	if (r < 0)
		return r;
	r = text_set(&c->landing_clone, err, "%s", clone);
	if (r < 0)
		return r;
	r = text_set(&c->landing_target, err, "%s", stage->target);
	if (r < 0)
		return r;
	c->state = ENGINE_CHANGE_LANDING;
	return shipping_save(s, NULL, err);
}

/* It landed in the directory of a branch: now the branch takes it.  0: it is held. */
static int land_on_branch(struct shipping *s, const struct engine_stage *stage,
			  const struct checkout *co, struct err *err)
{
	struct engine_promotion *p = s->promotion;
	struct err why = { 0 };
	int r = *p->id == '\0' ? 0 : checkout_land(s, stage, co, &why);

	if (r == -ESTALE || r == -EFBIG || r == -ECANCELED) {
		*s->change->landing_commit = '\0';
		return shipping_hold(s, "conflict", why.msg, err);
	}
	if (r < 0)
		return err_set(err, r, "%s", why.msg);
	return add_passed(s, stage, p->id, p->sha256, &p->checks, &p->n_checks, err);
}

static int ended(struct shipping *s, const struct engine_stage *stage, const struct checkout *co,
		 struct err *err)
{
	struct engine_promotion *p = s->promotion;
	char why[300];
	int r;

	switch (p->end) {
	case ENGINE_PROMOTED:
		/* The target has it already, and what was not merged was not checked. */
		if (*p->id == '\0' && p->n_checks < stage->n_checks)
			return check_target(s, stage, co->dir ? co->dir : stage->target, err);
		if (co->branch)
			return land_on_branch(s, stage, co, err);
		return add_passed(s, stage, p->id, p->sha256, &p->checks, &p->n_checks, err);
	case ENGINE_CHECK_FAILED:
		return hold_failed(s, &p->checks[p->n_checks - 1], err);
	case ENGINE_CONFLICTS:
		snprintf(why, sizeof(why), "%zu paths conflict with '%.200s'", p->n_conflicts,
			 stage->target);
		break;
	case ENGINE_HELD:
		r = note_held(s->change, p, err);
		snprintf(why, sizeof(why), "the guard holds %zu paths, and nobody approved them",
			 p->n_held);
		change_unapprove(s->change);
		return r < 0 ? r : wait_for_person(s, stage, NULL, why, err);
	case ENGINE_MOVED:
		snprintf(why, sizeof(why), "'%.200s' changes too fast to land in", stage->target);
		break;
	}
	return shipping_hold(s, "conflict", why, err);
}

/* Did it fail before anything could reach the target? */
static bool is_early(int r)
{
	return r == -ENOENT || r == -EINVAL || r == -ECANCELED || r == -EBUSY || r == -ESTALE;
}

static int promote(struct shipping *s, const struct engine_stage *stage, struct engine *there,
		   const char *clone, const struct checkout *co, struct err *err)
{
	const struct engine_change *c = s->change;
	const struct engine_promote_options options = {
		.clone = clone,
		.state = c->state_id,
		.checks = { (const char *const *)stage->checks, stage->n_checks },
		.allow = { (const char *const *)c->held, c->approved_by ? c->n_held : 0 },
		.watch = s->options->watch,
		.checking = s->options->checking,
		.checking_ctx = s->options->ctx,
	};
	int r = intend(s, stage, there, clone, err);

	if (r < 0)
		return r;
	engine_promotion_done(s->promotion);
	r = engine_promote(there, &options, s->promotion, err);
	if (r < 0 && is_early(r)) {
		s->change->state = ENGINE_CHANGE_READY;
		IGNORE_RESULT(shipping_save(s, NULL, NULL), "the failure counts");
	}
	return r < 0 ? r : ended(s, stage, co, err);
}

static int land(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	CLEANUP(vehicle_done) struct vehicle v = VEHICLE_INIT;
	const struct engine_change *c = s->change;
	int r;

	/* In its own project the clone itself is promoted, so that its base moves to what landed. */
	if (strcmp(stage->target, c->project) == 0 && engine_has_clone(s->engine, c->clone)) {
		CLEANUP(engine_close_p) struct engine *there = NULL;

		r = pipeline_engine(s->engine, stage->target, &there, err);
		if (r < 0)
			return r;
		r = promote(s, stage, there, c->clone, &v.checkout, err);
		if (r != -ESTALE && r != -EINVAL && r != -ENOENT)
			return r;
		/* It has moved on since, or is another one of the same name. */
	}
	r = vehicle_make(s, stage->target, &v, err);
	return r < 0 ? r : promote(s, stage, v.engine, v.name, &v.checkout, err);
}

int stage_pass(struct shipping *s, const struct engine_stage *stage, struct err *err)
{
	return stage->target ? land(s, stage, err) : check_alone(s, stage, err);
}

/* --- after a crash ------------------------------------------------------------------------- */

static bool is_known(const struct engine_change *c, const char *receipt)
{
	return VEC_HAS(it, c->landing_known, c->n_landing_known, strcmp(*it, receipt) == 0);
}

static int find_receipt(struct engine *there, const struct engine_change *c,
			struct engine_receipts *all, struct engine_receipt **ret, struct err *err)
{
	int r = engine_receipts(there, all, err);

	*ret = NULL;
	for (size_t i = 0; r >= 0 && i < all->n; i++) {
		struct engine_receipt *one = &all->list[i];

		if (one->kind == ENGINE_RECEIPT_PROMOTION && !one->undone && one->clone &&
		    strcmp(one->clone, c->landing_clone) == 0 && !is_known(c, one->id))
			*ret = one;
	}
	return r;
}

/* No other command has the target's turn once this returns, so a landing is over. */
static int await_landing(struct engine *there, const char *clone, struct err *err)
{
	const struct engine_promote_options options = { .clone = clone, .dry_run = true };
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	int r = engine_promote(there, &options, &p, err);

	return r == -ENOENT ? 0 : r;
}

/* 1: it is there; 0: it is not.  A directory tells by its receipt. */
static int is_on_branch(const struct engine_change *c, struct err *err)
{
	CLEANUP(branch_close_p) struct branch *b = NULL;
	int r;

	if (!target_is_branch(c->landing_target))
		return 1;
	if (*c->landing_commit == '\0')
		return 0;
	r = target_branch(c->landing_target, &b, err);
	if (r < 0)
		return r;
	r = branch_contains(b, c->landing_commit, err);
	if (r != 0)
		return r;
	return branch_unlock(b, c->landing_commit, err);
}

int stage_recover(struct shipping *s, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	CLEANUP(engine_close_p) struct engine *there = NULL;
	CLEANUP(engine_receipts_done) struct engine_receipts all = { 0 };
	const struct engine_stage *stage = s->change->n_settings > 0
					       ? &s->change->settings[0]
					       : pipeline_stage(&s->pipeline, s->change->stage);
	struct engine_receipt *receipt = NULL;
	int r;

	if (!s->change->landing_clone || !s->change->landing_target || !stage)
		return err_set(err, -EINVAL,
			       "change '%s' was landing on stage '%s', which is not configured",
			       s->change->id, s->change->stage ? s->change->stage : "");
	dir = target_dir(s->engine, s->change->landing_target);
	r = dir ? pipeline_engine(s->engine, dir, &there, err) : err_nomem(err);
	if (r < 0)
		return r;
	r = await_landing(there, s->change->landing_clone, err);
	if (r < 0)
		return r;
	r = find_receipt(there, s->change, &all, &receipt, err);
	if (r < 0)
		return r;
	r = stage_tidy(s, err);
	if (r < 0)
		return r;
	/* Somebody may have promoted the clone by hand since: only what is certainly the same counts. */
	if (receipt && strcmp(s->change->landing_clone, s->change->clone) == 0 &&
	    strcmp(receipt->sha256 ? receipt->sha256 : "", s->change->sha256) != 0)
		return err_set(err, -ECANCELED,
			       "the process that landed change %s died, and promotion %s may be "
			       "another one of clone '%s': undo that one first",
			       s->change->id, receipt->id, s->change->clone);
	r = receipt ? is_on_branch(s->change, err) : 0;
	if (r < 0)
		return r;
	if (r > 0)
		return add_passed(s, stage, receipt->id, receipt->sha256 ? receipt->sha256 : "",
				  &receipt->checks, &receipt->n_checks, err);
	*s->change->landing_commit = '\0';
	s->change->state = ENGINE_CHANGE_READY;
	return shipping_save(s, NULL, err);
}
