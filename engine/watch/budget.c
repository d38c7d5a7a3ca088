#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "engine/watch/watch-i.h"

#define HOUR_NS        (INT64_C(3600) * NS_PER_S)
#define DAY_NS         (24 * HOUR_NS)
#define BACKOFF_MAX_MS (UINT64_C(24) * 3600 * 1000)

static bool has_failed(const struct engine_firing *f)
{
	return f->result && (strcmp(f->result, "failed") == 0 || strcmp(f->result, "lost") == 0);
}

/* Of a run that is not over only its start is known; every attempt counts. */
void budget_count(const struct engine_firings *all, const struct engine_rule *rule, int64_t reset,
		  int64_t now, struct budget_use *ret)
{
	const struct engine_firing *last = NULL;
	bool in_a_row = true;

	*ret = (struct budget_use){ 0 };
	if (rule->probed_since > now - DAY_NS && rule->probed_ms > 0) {
		ret->cpu_day_ms = rule->probed_ms;
		ret->oldest_cpu = rule->probed_since;
	}
	for (size_t i = 0; i < all->n; i++) {
		const struct engine_firing *f = &all->list[i];

		if (strcmp(f->rule, rule->name) != 0 || f->begun == 0)
			continue;
		if (f->begun > ret->last)
			ret->last = f->begun;
		if (f->begun > now - HOUR_NS) {
			ret->runs_hour += f->attempts;
			ret->oldest_run = f->begun;
		}
		if (f->begun > now - DAY_NS && f->cpu_ms > 0) {
			ret->cpu_day_ms += f->cpu_ms;
			if (ret->oldest_cpu == 0 || f->begun < ret->oldest_cpu)
				ret->oldest_cpu = f->begun;
		}
		if (f->state != ENGINE_FIRING_DONE)
			continue;
		in_a_row = in_a_row && has_failed(f) && f->begun >= reset;
		if (!in_a_row)
			continue;
		ret->failures++;
		if (!last)
			ret->failed = f->ended;
		if (!last || strcmp(f->signature, last->signature) == 0)
			ret->same = ret->failures;
		last = last ? last : f;
	}
}

static uint64_t backoff(const struct engine_rule *rule, const struct budget_use *use)
{
	uint64_t ms = rule->budget.backoff_ms;

	for (uint64_t i = 1; i < use->same && ms < BACKOFF_MAX_MS; i++)
		ms *= 2;
	return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

static bool has_used_the_day(const struct engine_rule *rule, const struct budget_use *use,
			     char why[200], int64_t *until)
{
	const uint64_t most = rule->budget.cpu_per_day_ms;
	char limit[DURATION_TEXT_MAX];

	if (most == 0 || use->cpu_day_ms < most)
		return false;
	snprintf(why, 200, "it has used its %s of processor time for a day",
		 duration_format(most, limit));
	*until = use->oldest_cpu + DAY_NS;
	return true;
}

static bool spends_too_much(const struct engine_rule *rule, const struct budget_use *use,
			    int64_t now, char why[200], int64_t *until)
{
	const struct engine_budget *b = &rule->budget;

	if (b->runs_per_hour > 0 && use->runs_hour >= b->runs_per_hour) {
		snprintf(why, 200, "it ran %" PRIu64 " times in the last hour, and may %" PRIu64,
			 use->runs_hour, b->runs_per_hour);
		*until = use->oldest_run + HOUR_NS;
		return true;
	}
	if (has_used_the_day(rule, use, why, until))
		return true;
	if (b->failures > 0 && use->failures >= b->failures) {
		snprintf(why, 200, "it failed %" PRIu64 " times in a row", use->failures);
		*until = 0;
		return true;
	}
	if (use->failures > 0) {
		*until = use->failed + (int64_t)backoff(rule, use) * NS_PER_MS;
		snprintf(why, 200, "it failed%s, and waits before it tries again",
			 use->same > 1 ? " the same way again" : "");
		return *until > now;
	}
	return false;
}

static bool is_quiet(const struct engine_rule *rule, int64_t now, char why[200], int64_t *until)
{
	int64_t end;

	for (size_t i = 0; i < rule->n_quiet; i++)
		if (day_span_holds(&rule->quiet[i], now / NS_PER_S, &end)) {
			snprintf(why, 200, "these are its quiet hours");
			*until = end * NS_PER_S;
			return true;
		}
	return false;
}

static bool is_crowded(const struct engine_rules_of_watch *rules, const struct engine_rule *rule,
		       const struct engine_firings *all, char why[200])
{
	uint64_t running = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct engine_firing *f = &all->list[i];

		if (!f->alive || f->state == ENGINE_FIRING_DONE)
			continue;
		running++;
		if (strcmp(f->rule, rule->name) == 0 ||
		    (!rule->parallel && strcmp(f->project, rule->project) == 0)) {
			snprintf(why, 200, "the action of '%s' runs in the same project", f->rule);
			return true;
		}
	}
	if (running < rules->concurrent)
		return false;
	snprintf(why, 200, "%" PRIu64 " actions run", running);
	return true;
}

static bool is_held(const struct engine_rule *rule, const struct watch_control *control,
		    char why[200])
{
	const struct watch_pause *own = watch_control_of(control, rule->name);

	if (!rule->off && !control->paused && !(own && own->paused))
		return false;
	snprintf(why, 200, "%s",
		 rule->problem ? rule->problem
		 : rule->off   ? "it is off"
			       : "it is paused");
	return true;
}

bool budget_allows_probe(const struct engine_rule *rule, const struct engine_firings *all,
			 const struct watch_control *control, int64_t now, char why[200],
			 int64_t *until)
{
	struct budget_use use;

	*until = 0;
	budget_count(all, rule, 0, now, &use);
	return !is_held(rule, control, why) && !is_quiet(rule, now, why, until) &&
	       !has_used_the_day(rule, &use, why, until);
}

bool budget_allows_again(const struct engine_rules_of_watch *rules, const struct engine_rule *rule,
			 const struct engine_firings *all, const struct watch_control *control,
			 int64_t now, char why[200], int64_t *until)
{
	*until = 0;
	return !is_held(rule, control, why) && !is_quiet(rule, now, why, until) &&
	       !is_crowded(rules, rule, all, why);
}

bool budget_allows(const struct engine_rules_of_watch *rules, const struct engine_rule *rule,
		   const struct engine_firings *all, const struct watch_control *control,
		   int64_t now, char why[200], int64_t *until)
{
	const int64_t reset = watch_control_reset(control, rule->name, now);
	struct budget_use use;

	*until = 0;
	if (is_held(rule, control, why))
		return false;
	budget_count(all, rule, reset, now, &use);
	return !spends_too_much(rule, &use, now, why, until) && !is_quiet(rule, now, why, until) &&
	       !is_crowded(rules, rule, all, why);
}
