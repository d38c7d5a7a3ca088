/*
 * The action of a firing, step by step. Each step is written down before it is taken: RUNNING
 * before the clone is made, DECIDED with the decision before it is carried out, DONE at the end. A
 * process that finds RUNNING begins again on a new clone, because nothing outside of the old one
 * has changed; one that finds DECIDED never runs the action.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/via.h"
#include "engine/api/experiment.h"
#include "engine/api/service.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/action-i.h"

#define ATTEMPTS_MAX 5
#define FRESH_NS     (2 * NS_PER_S)
#define KEPT_MS      (UINT64_C(14) * 24 * 3600 * 1000) /* that a clone waits for a review */

/* --- clones -------------------------------------------------------------------------------- */

static int remove_clone(struct action *a, struct err *err)
{
	struct engine_removed removed;

	if (!a->firing->clone || !engine_has_clone(a->there, a->firing->clone))
		return 0;
	return engine_remove(a->there, a->firing->clone, true, &removed, err);
}

/* When the cowfsd that serves the clone began; 0: not known. */
static int64_t cowfsd_began(struct action *a)
{
	struct engine_service s = { 0 };

	return engine_service(a->there, &s, NULL) < 0 ? 0 : s.began;
}

/* What was captured just now need not be captured again; all else is the project as it is. */
static int make_clone(struct action *a, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	char via[VIA_MAX + 1];
	const struct engine_clone_options options = {
		.name = a->firing->clone,
		.ttl_ms = KEPT_MS,
		.via = via,
	};
	int r;

	a->cowfsd = 0;
	r = remove_clone(a, err);
	if (r < 0)
		return r;
	snprintf(via, sizeof(via), "watch:%s", a->firing->rule);
	r = engine_clone(a->there, &options, &clones, err);
	if (r < 0)
		return r;
	a->cowfsd = cowfsd_began(a);
	return r;
}

/* What is not synced dies with its cowfsd, and nothing in the clone shows that. */
static int store_clone(struct action *a, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	const struct engine_take_options options = { .clone = a->firing->clone, .automatic = true };
	int r = engine_take(a->there, &options, &taken, err);

	if (r < 0)
		return r;
	if (a->cowfsd == 0 || cowfsd_began(a) != a->cowfsd)
		return err_set(err, -ECONNRESET, "cowfsd died before what it left was stored");
	return r;
}

/* --- an experiment ------------------------------------------------------------------------- */

/* The winner's clone takes the place of the action's own. */
static int take_winner(struct action *a, const struct engine_experiment *x, struct err *err)
{
	struct engine_firing *f = a->firing;
	const struct engine_arm *arm = x->winner ? engine_experiment_arm(x, x->winner) : NULL;

	if (arm && arm->has_clone)
		return text_set(&f->clone, err, "%s", arm->clone);
	f->exit_code = 1;
	return text_set(&f->why, err, "%s", x->verdict ? x->verdict : "no arm of it won");
}

/* Remove what attempts up to that one have left, with their clones. */
static int remove_experiments(struct action *a, uint64_t last, struct err *err)
{
	int r = 0;

	for (uint64_t i = 1; i <= last && r >= 0; i++) {
		AUTO_FREE char *name = firing_experiment(a->firing, i);

		r = name ? engine_experiment_remove(a->there, name, err) : err_nomem(err);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

/* However it ended. */
static void count_arms(struct action *a, const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;

	while ((arm = engine_arms_next(&walk)))
		a->firing->cpu_ms += arm->cpu_ms;
	a->firing->duration_ms = x->spent_ms;
}

static int run_experiment(struct action *a, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	const struct engine_experiment_options silent = { .watch = { 0 } };
	AUTO_FREE char *name = firing_experiment(a->firing, a->firing->attempts);
	int r;

	if (!name)
		return err_nomem(err);
	r = remove_experiments(a, a->firing->attempts - 1, err);
	if (r < 0)
		return r;
	engine_experiment_init(&x);
	r = engine_experiment_read(a->there, a->rule->experiment, a->rule->profile, &x, err);
	if (r < 0)
		return r;
	free(x.name);
	x.name = TAKE_PTR(name);
	/* What lands is for the pipeline to say. */
	x.promote = ENGINE_PROMOTE_NO_ARM;
	x.keep = ENGINE_KEEP_BEST;
	x.all_time_ms = a->rule->budget.wall_ms;
	r = engine_experiment(a->there, &x, &silent, &p, err);
	count_arms(a, &x);
	if (r == -EINTR)
		return err_set(err, r,
			       "it was ended: its rule has no processor time left for "
			       "today, or somebody cancelled it");
	return r < 0 ? r : take_winner(a, &x, err);
}

/* --- deciding ------------------------------------------------------------------------------ */

static int count_changes(struct action *a, struct err *err)
{
	CLEANUP(engine_facts_done) struct engine_facts facts = { 0 };
	const struct engine_facts_options options = { .clone = a->firing->clone };
	int r = engine_facts(a->there, &options, &facts, err);

	a->firing->files = facts.files;
	a->firing->lines = facts.lines_added + facts.lines_removed;
	return r;
}

/* What is to become of an action that ended; `why` is set unless it is what the rule says. */
static int choose(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	const uint64_t lines = a->rule->budget.lines;
	int r;

	f->then = ENGINE_THEN_REPORT;
	if (f->exit_code != 0)
		return text_set(&f->result, err, "failed");
	r = count_changes(a, err);
	if (r < 0)
		return r;
	if (f->files == 0)
		return text_set(&f->result, err, "nothing");
	f->then = a->rule->then;
	if (f->then == ENGINE_THEN_REPORT)
		return text_set(&f->result, err, "reported");
	if (lines > 0 && f->lines > lines) {
		f->then = ENGINE_THEN_KEEP;
		r = text_set(&f->why, err, "it changed %" PRIu64 " lines, and may change %" PRIu64,
			     f->lines, lines);
		return r < 0 ? r : text_set(&f->result, err, "over-budget");
	}
	return f->then == ENGINE_THEN_KEEP ? text_set(&f->result, err, "kept") : 0;
}

static int run_on_clone(struct action *a, struct err *err)
{
	int r = make_clone(a, err);

	if (r < 0)
		return r;
	r = action_run_command(a, err);
	if (r < 0)
		return r;
	return store_clone(a, err);
}

/* The action itself: everything until it can be decided. */
static int perform(struct action *a, struct err *err)
{
	int r = a->rule->experiment ? run_experiment(a, err) : run_on_clone(a, err);

	return r < 0 ? r : choose(a, err);
}

/* It could not be run at all, or not be judged. */
static int give_up(struct action *a, const struct err *problem, struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = text_set(&f->why, err, "%s", problem->msg);

	f->exit_code = f->exit_code == 0 ? -1 : f->exit_code;
	f->then = ENGINE_THEN_REPORT;
	action_sign(f, NULL);
	return r < 0 ? r : text_set(&f->result, err, "failed");
}

/* What the attempt before this one has used, which died: once, as the run goes with it. */
static int count_died(struct action *a, struct err *err)
{
	uint64_t cpu_ms = 0;
	int r = 0;

	if (*a->firing->run != '\0')
		r = meter_recall(a->engine, a->firing->run, &cpu_ms, err);
	if (r < 0)
		return r;
	a->firing->cpu_ms += cpu_ms;
	*a->firing->run = '\0';
	return 0;
}

static int lose(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = text_set(&f->result, err, "lost");

	if (r < 0)
		return r;
	f->then = ENGINE_THEN_REPORT;
	return text_set(&f->why, err, "what ran it died %d times", ATTEMPTS_MAX);
}

static int attempt(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	struct err problem = { 0 };
	int done, r;

	f->attempts++;
	free(TAKE_PTR(f->why));
	f->begun = pipeline_now();
	f->state = ENGINE_FIRING_RUNNING;
	r = text_set(&f->clone, err, "w-%s-%s", f->rule, f->id);
	if (r < 0)
		return r;
	r = firing_save(a->engine, &a->lock, f, NULL, err);
	if (r < 0)
		return r;
	done = perform(a, &problem);
	/* It is as if we had died: the next process begins again on another clone, and counts this. */
	if (done == -ECONNRESET) {
		if (a->counted)
			*f->run = '\0';
		r = firing_save(a->engine, &a->lock, f, NULL, err);
		return r < 0 ? r : err_set(err, done, "%s", problem.msg);
	}
	return done < 0 ? give_up(a, &problem, err) : 0;
}

static int begin(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = count_died(a, err);

	if (r < 0)
		return r;
	r = f->attempts >= ATTEMPTS_MAX ? lose(a, err) : attempt(a, err);
	if (r < 0)
		return r;
	f->state = ENGINE_FIRING_DECIDED;
	f->ended = pipeline_now();
	return firing_save(a->engine, &a->lock, f, NULL, err);
}

/* --- carrying out -------------------------------------------------------------------------- */

/* The change that a process which died has made of the clone.  1: there is one. */
static int find_change(struct action *a, struct err *err)
{
	CLEANUP(engine_changes_done) struct engine_changes all = { 0 };
	int r = engine_changes(a->engine, true, &all, err);

	for (size_t i = 0; r >= 0 && i < all.n; i++)
		if (strcmp(all.list[i].clone, a->firing->clone) == 0) {
			memcpy(a->firing->change, all.list[i].id, ENGINE_ID_SIZE);
			return 1;
		}
	return r;
}

static int ship(struct action *a, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	AUTO_FREE char *who = firing_asker(a->firing->rule);
	const struct engine_ship_options options = {
		.clone = a->firing->clone,
		.to = a->rule->to,
		.who = who,
		.by_time = true,
		.subject = { (const char *const *)a->rule->subject, a->rule->n_subject },
	};
	int r = who ? find_change(a, err) : err_nomem(err);

	if (r < 0)
		return r;
	r = r > 0 ? engine_ship_on(a->there, a->firing->change, &options, &c, &p, err)
		  : engine_ship(a->there, &options, &c, &p, err);
	if (r >= 0 && *c.id != '\0')
		memcpy(a->firing->change, c.id, ENGINE_ID_SIZE);
	return r;
}

/* What cannot be shipped is a result. */
static int cannot_ship(struct action *a, int r, const struct err *problem, struct err *err)
{
	struct engine_firing *f = a->firing;

	if (r == -ENODATA)
		return text_set(&f->result, err, "nothing");
	if (r != -ECANCELED && r != -ENOENT && r != -EINVAL)
		return err_set(err, r, "%s", problem->msg);
	/* The same change was found sick or rejected before: there is nothing to look at again. */
	f->then = r == -ECANCELED ? ENGINE_THEN_REPORT : ENGINE_THEN_KEEP;
	r = text_set(&f->why, err, "%s", problem->msg);
	if (r < 0)
		return r;
	return text_set(&f->result, err, f->then == ENGINE_THEN_KEEP ? "kept" : "barred");
}

static int keep_unshipped(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = text_set(&f->why, err, "its rule no longer says ship");

	f->then = ENGINE_THEN_KEEP;
	return r < 0 ? r : text_set(&f->result, err, "kept");
}

/* What is left to decide: whether it is shipped. */
static int conclude(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	struct err problem = { 0 };
	int r;

	free(TAKE_PTR(f->why));
	/* The rule went, or may less by now. */
	if (!a->rule || a->rule->then < f->then) {
		r = keep_unshipped(a, err);
	} else {
		r = ship(a, &problem);
		r = r < 0 ? cannot_ship(a, r, &problem, err) : text_set(&f->result, err, "shipped");
	}
	return r < 0 ? r : firing_save(a->engine, &a->lock, f, NULL, err);
}

static int carry_out(struct action *a, struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = f->result ? 0 : conclude(a, err);

	if (r < 0)
		return r;
	if (f->then != ENGINE_THEN_KEEP)
		r = remove_clone(a, err);
	if (r < 0)
		return r;
	if (f->then != ENGINE_THEN_KEEP && (!a->rule || a->rule->experiment))
		r = remove_experiments(a, f->attempts, err);
	if (r < 0)
		return r;
	f->state = ENGINE_FIRING_DONE;
	f->ended = pipeline_now();
	return firing_save(a->engine, &a->lock, f, "watch-done", err);
}

static void action_done(struct action *a)
{
	engine_close(a->there);
	docket_lock_done(&a->lock);
}

static int drop(struct action *a, const char *why, struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = text_set(&f->result, err, "dropped");

	if (r < 0)
		return r;
	r = text_set(&f->why, err, "%s", why);
	if (r < 0)
		return r;
	f->state = ENGINE_FIRING_DONE;
	f->ended = pipeline_now();
	return firing_save(a->engine, &a->lock, f, "watch-done", err);
}

static int go_on(struct action *a, const char *id, struct engine_rules_of_watch *rules,
		 struct err *err)
{
	struct engine_firing *f = a->firing;
	int r = firing_load(a->engine, id, &a->lock, f, err);

	if (r < 0 || f->state == ENGINE_FIRING_DONE)
		return r;
	/* The newest rules count: what was narrowed meanwhile is. */
	r = engine_watch_rules(a->engine, rules, err);
	if (r < 0 && r != -ENOENT)
		return r;
	a->rule = rules_find(rules, f->rule);
	/* How its project narrows it is not known: it waits. */
	if (a->rule && a->rule->problem)
		return err_set(err, -EINVAL, "%s", a->rule->problem);
	r = pipeline_engine(a->engine, f->project, &a->there, err);
	if (r < 0)
		return r;
	if (f->state != ENGINE_FIRING_DECIDED && (!a->rule || a->rule->off)) {
		r = remove_clone(a, err);
		if (r < 0)
			return r;
		r = remove_experiments(a, f->attempts, err);
		return r < 0 ? r : drop(a, "its rule is gone or off", err);
	}
	if (f->state != ENGINE_FIRING_DECIDED)
		r = begin(a, err);
	if (r < 0)
		return r;
	r = carry_out(a, err);
	return r < 0 ? r : action_tell(a->engine, &a->lock, f, rules, err);
}

/* What keeps it from going on, until that is tried again. */
static void note_obstacle(struct action *a, const char *id, const struct err *why)
{
	CLEANUP(engine_firing_done) struct engine_firing f = { 0 };
	struct err ignored = { 0 };

	/* As it is on the disk: what this process did not get there did not happen. */
	if (firing_load(a->engine, id, &a->lock, &f, &ignored) < 0 || f.result ||
	    (f.why && strcmp(f.why, why->msg) == 0))
		return;
	if (text_set(&f.why, &ignored, "%s", why->msg) >= 0)
		IGNORE_RESULT(firing_save(a->engine, &a->lock, &f, NULL, &ignored),
			      "the process that follows the rules says it, too");
}

int action_do(struct engine *e, const char *id, struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	CLEANUP(engine_firing_done) struct engine_firing f = { 0 };
	CLEANUP(action_done)
	struct action a = { .engine = e, .firing = &f, .lock = DOCKET_LOCK_INIT };
	int r = docket_take(e, &firing_kind, id, &a.lock, err);

	if (r < 0)
		return r;
	r = go_on(&a, id, &rules, err);
	if (r < 0 && r != -EBUSY)
		note_obstacle(&a, id, err);
	return r;
}

/* --- trying -------------------------------------------------------------------------------- */

/* Perform it as if it had fired, and foresee what would become of that. */
static int rehearse(struct action *a, struct engine_watch_test *t, struct err *err)
{
	struct engine_firing *f = a->firing;
	struct catalog_id id;
	int r = catalog_id_new(&id, err);

	if (r < 0)
		return r;
	catalog_id_hex(&id, f->id);
	f->rule = strdup(a->rule->name);
	f->project = strdup(a->rule->project);
	if (!f->rule || !f->project)
		return err_nomem(err);
	f->trigger = a->rule->trigger;
	f->created = f->begun = pipeline_now();
	f->attempts = 1;
	r = pipeline_engine(a->engine, a->rule->project, &a->there, err);
	if (r < 0)
		return r;
	r = text_set(&f->clone, err, "w-test-%s", f->id);
	if (r < 0)
		return r;
	r = perform(a, err);
	if (r < 0 || f->exit_code != 0 || f->files == 0)
		return r;
	return foresee(a, t, err);
}

int action_try(struct engine *e, const struct engine_rules_of_watch *rules,
	       const struct engine_rule *rule, struct engine_watch_test *t, struct err *err)
{
	struct action a = {
		.engine = e, .rule = rule, .firing = &t->firing, .lock = DOCKET_LOCK_INIT
	};
	struct err ignored = { 0 };
	int r = rehearse(&a, t, err);

	if (a.there && remove_clone(&a, r < 0 ? &ignored : err) < 0 && r >= 0)
		r = err->code;
	if (a.there && rule->experiment && remove_experiments(&a, 1, r < 0 ? &ignored : err) < 0 &&
	    r >= 0)
		r = err->code;
	engine_close(a.there);
	return r;
}
