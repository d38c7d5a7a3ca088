/*
 * The loop's look at firings: it begins the actions that may begin, and holds back those over
 * budget.
 */
#include <errno.h>

#include "base/log.h"
#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/loop-i.h"

#define BUSY_MS  UINT64_C(200) /* after which a lock is tried again */
#define METER_MS UINT64_C(250)
#define DAY_NS   (INT64_C(24) * 3600 * NS_PER_S) /* after which old ones are removed */

static int begin_firing(struct loop *l, struct engine_firing *f, int64_t now, struct err *err)
{
	const struct engine_rule *rule = rules_find(&l->rules, f->rule);
	int64_t until = 0;
	char why[200];
	int r;

	if (f->state == ENGINE_FIRING_DONE || loop_child_is_left_alone(l, f->id))
		return 0;
	/* Nobody says when another process lets it go. */
	if (f->alive && !loop_child_is_running(l, CHILD_ACTION, f->id))
		loop_wake_in(l, engine_clock_ms() + BUSY_MS);
	if (f->alive)
		return 0;
	/* One that was begun is counted already. */
	if (f->state == ENGINE_FIRING_QUEUED && rule &&
	    !budget_allows(&l->rules, rule, &l->firings, &l->control, now, why, &until)) {
		loop_wake_at(l, until);
		return 0;
	}
	/* A rule that is off has its action dropped. */
	if (f->state == ENGINE_FIRING_RUNNING && rule && !rule->off &&
	    !budget_allows_again(&l->rules, rule, &l->firings, &l->control, now, why, &until)) {
		loop_wake_at(l, until);
		return 0;
	}
	if (f->state != ENGINE_FIRING_QUEUED && l->control.paused)
		return 0;
	/* Without rules nobody knows what it may do. */
	if (l->state.problem || (rule && rule->problem))
		return 0;
	r = loop_child_start(l, CHILD_ACTION, f->id, err);
	f->alive = r >= 0;
	return r;
}

/* An action that runs may not use more than its rule has left. */
static int hold_back(struct loop *l, const struct engine_firing *f, int64_t now, struct err *err)
{
	const struct engine_rule *rule = f->alive ? rules_find(&l->rules, f->rule) : NULL;
	struct err problem = { 0 };
	uint64_t cpu_ms;

	if (!rule || rule->budget.cpu_per_day_ms == 0)
		return 0;
	loop_wake_in(l, engine_clock_ms() + METER_MS);
	if (meter_hold(l->engine, rule, f, &l->firings, now, &cpu_ms, &problem) == -ENOMEM)
		return err_nomem(err);
	if (meter_note(&l->state, f->run, cpu_ms))
		l->state.moved = true;
	if (problem.code < 0)
		log_warn("firing %s: %s", f->id, problem.msg);
	return 0;
}

/* What was begun comes first, and the oldest of each. */
static int begin_firings(struct loop *l, int64_t now, struct err *err)
{
	int r = 0;

	for (int queued = 0; queued < 2; queued++)
		for (size_t i = l->firings.n; r >= 0 && i-- > 0;)
			if ((l->firings.list[i].state == ENGINE_FIRING_QUEUED) == queued)
				r = begin_firing(l, &l->firings.list[i], now, err);
	return r;
}

int loop_look_at_firings(struct loop *l, int64_t now, struct err *err)
{
	int r;

	engine_firings_done(&l->firings);
	r = engine_watch_log(l->engine, &l->firings, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < l->firings.n; i++)
		l->firings.list[i].alive |=
		    loop_child_is_running(l, CHILD_ACTION, l->firings.list[i].id);
	for (size_t i = 0; r >= 0 && i < l->firings.n; i++)
		r = firing_set_clock(l->engine, &l->firings.list[i], now, err);
	for (size_t i = 0; r >= 0 && i < l->firings.n; i++)
		r = hold_back(l, &l->firings.list[i], now, err);
	if (r < 0)
		return r;
	meter_forget(&l->state, &l->firings);
	r = begin_firings(l, now, err);
	/*
	 * The firing is written, and is named by what fired it: looked at once more after a crash, that makes no
	 * second one.  So its action need not wait until the state is on the disk.
	 */
	if (r < 0)
		return r;
	if (l->state.moved)
		r = loop_save(l, err);
	if (r < 0 || now <= l->pruned + DAY_NS)
		return r;
	l->pruned = now;
	return firing_prune(l->engine, &l->firings, err);
}
