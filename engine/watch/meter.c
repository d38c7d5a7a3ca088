#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "engine/api/experiment.h"
#include "engine/watch/watch-i.h"

#define STEP_MS UINT64_C(1000) /* that a run uses between two writes of it */

static int run_cpu(struct engine *e, const char *id, uint64_t *ret, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	struct engine_run_use use = { 0 };
	int r = engine_run_find(e, id, &run, err);

	if (r < 0 || run.state != ENGINE_RUN_RUNNING)
		return r == -ENOENT ? 0 : r;
	engine_run_look(&run, &use);
	*ret += use.known ? use.cpu_ms : 0;
	return 0;
}

/* What arms have used that are through, and those that run. */
static int hold_experiment(struct engine *e, const struct engine_rule *rule,
			   const struct engine_firing *f, const struct engine_firings *all,
			   int64_t now, struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 }, ended = { 0 };
	AUTO_FREE char *name = firing_experiment(f, f->attempts);
	struct engine_arms_walk walk;
	const struct engine_arm *arm;
	struct budget_use spent;
	uint64_t cpu_ms = 0;
	int r = name ? engine_experiment_load(e, name, &x, err) : err_nomem(err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	walk = engine_arms_walk(&x);
	while (r >= 0 && (arm = engine_arms_next(&walk))) {
		cpu_ms += arm->cpu_ms;
		if (*arm->now != '\0')
			r = run_cpu(e, arm->now, &cpu_ms, err);
	}
	budget_count(all, rule, 0, now, &spent);
	if (r < 0 || spent.cpu_day_ms + cpu_ms <= rule->budget.cpu_per_day_ms)
		return r;
	r = engine_experiment_cancel(e, name, &ended, err);
	return r == -ENOENT || r > 0 ? 0 : r;
}

int meter_hold(struct engine *e, const struct engine_rule *rule, const struct engine_firing *f,
	       const struct engine_firings *all, int64_t now, uint64_t *ret_cpu_ms, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 }, ended = { 0 };
	struct engine_run_use use = { 0 };
	struct budget_use spent;
	int r;

	*ret_cpu_ms = 0;
	if (rule->budget.cpu_per_day_ms == 0 || f->state != ENGINE_FIRING_RUNNING)
		return 0;
	if (rule->experiment)
		return hold_experiment(e, rule, f, all, now, err);
	if (*f->run == '\0')
		return 0;
	r = engine_run_find(e, f->run, &run, err);
	if (r < 0 || run.state != ENGINE_RUN_RUNNING)
		return r == -ENOENT ? 0 : r;
	engine_run_look(&run, &use);
	*ret_cpu_ms = use.known ? use.cpu_ms : 0;
	budget_count(all, rule, 0, now, &spent);
	if (!use.known || spent.cpu_day_ms + use.cpu_ms <= rule->budget.cpu_per_day_ms)
		return 0;
	r = engine_run_cancel(e, f->run, &ended, err);
	return r == -ENOENT || r > 0 ? 0 : r;
}

static struct watch_meter *meter_of(const struct watch_state *s, const char *run)
{
	return VEC_FIND(it, s->meters, s->n_meters, strcmp(it->run, run) == 0);
}

bool meter_note(struct watch_state *s, const char *run, uint64_t cpu_ms)
{
	struct watch_meter *m = meter_of(s, run);

	if (cpu_ms < (m ? m->cpu_ms : 0) + STEP_MS)
		return false;
	if (!m && !VEC_ONE_MORE(s->meters, s->n_meters))
		return false;
	if (!m) {
		m = &s->meters[s->n_meters++];
		*m = (struct watch_meter){ 0 };
		snprintf(m->run, sizeof(m->run), "%s", run);
	}
	m->cpu_ms = cpu_ms;
	return true;
}

void meter_forget(struct watch_state *s, const struct engine_firings *all)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_meters; i++) {
		bool begun = false;

		for (size_t k = 0; k < all->n && !begun; k++)
			begun = all->list[k].state == ENGINE_FIRING_RUNNING &&
				strcmp(all->list[k].run, s->meters[i].run) == 0;
		if (begun)
			s->meters[n++] = s->meters[i];
	}
	s->moved |= n != s->n_meters;
	s->n_meters = n;
}

int meter_recall(struct engine *e, const char *run, uint64_t *ret_cpu_ms, struct err *err)
{
	CLEANUP(watch_state_done) struct watch_state s = { 0 };
	const struct watch_meter *m;
	int r = watch_state_load(e, NULL, &s, NULL, err);

	m = meter_of(&s, run);
	*ret_cpu_ms = m ? m->cpu_ms : 0;
	return r;
}
