#include <errno.h>

#include "engine/watch/watch-i.h"

int meter_hold(struct engine *e, const struct engine_rule *rule, const struct engine_firing *f,
	       const struct engine_firings *all, int64_t now, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 }, ended = { 0 };
	struct engine_run_use use = { 0 };
	struct budget_use spent;
	int r;

	if (rule->budget.cpu_per_day_ms == 0 || *f->run == '\0' ||
	    f->state != ENGINE_FIRING_RUNNING)
		return 0;
	r = engine_run_find(e, f->run, &run, err);
	if (r < 0 || run.state != ENGINE_RUN_RUNNING)
		return r == -ENOENT ? 0 : r;
	engine_run_look(&run, &use);
	budget_count(all, rule, 0, now, &spent);
	if (!use.known || spent.cpu_day_ms + use.cpu_ms <= rule->budget.cpu_per_day_ms)
		return 0;
	r = engine_run_cancel(e, f->run, &ended, err);
	return r == -ENOENT || r > 0 ? 0 : r;
}
