#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/pipeline/pipeline-i.h"
#include "engine/watch/watch-i.h"

#define DAY_NS (INT64_C(24) * 3600 * NS_PER_S)

void engine_watch_status_done(struct engine_watch_status *s)
{
	engine_watch_rules_done(&s->rules);
	engine_firings_done(&s->firings);
	engine_changes_done(&s->changes);
	free(s->list);
	free(s->problem);
	*s = (struct engine_watch_status){ 0 };
}

/* --- a rule -------------------------------------------------------------------------------- */

static bool has_landed(const struct engine_watch_status *s, const char *change)
{
	for (size_t i = 0; i < s->changes.n; i++)
		if (strcmp(s->changes.list[i].id, change) == 0)
			for (size_t k = 0; k < s->changes.list[i].n_passed; k++)
				if (s->changes.list[i].passed[k].target &&
				    !s->changes.list[i].passed[k].undone)
					return true;
	return false;
}

static void count(const struct engine_watch_status *s, struct engine_rule_status *ret, bool *queued,
		  bool *running)
{
	for (size_t i = 0; i < s->firings.n; i++) {
		const struct engine_firing *f = &s->firings.list[i];

		if (strcmp(f->rule, ret->rule->name) != 0)
			continue;
		*queued |= f->state == ENGINE_FIRING_QUEUED && !f->alive;
		*running |= f->alive;
		if (f->created <= s->now - DAY_NS)
			continue;
		ret->fired++;
		ret->failed += f->result &&
			       (strcmp(f->result, "failed") == 0 || strcmp(f->result, "lost") == 0);
		ret->landed += *f->change != '\0' && has_landed(s, f->change);
	}
}

static void describe(const struct engine_watch_status *s, const struct watch_control *control,
		     struct watch_state *state, struct engine_rule_status *ret)
{
	const struct watch_pause *own = watch_control_of(control, ret->rule->name);
	const int64_t reset = watch_control_reset(control, ret->rule->name, s->now);
	const struct engine_budget *b = &ret->rule->budget;
	bool queued = false, running = false, allowed;
	struct watch_cursor *cursor;
	struct budget_use use;
	int64_t due;

	count(s, ret, &queued, &running);
	cursor = watch_cursor(state, ret->rule, s->now);
	budget_count(&s->firings, ret->rule, reset, s->now, &use);
	ret->runs_hour = use.runs_hour;
	ret->cpu_day_ms = use.cpu_day_ms;
	ret->failures = use.failures;
	ret->last = use.last;
	allowed =
	    budget_allows(&s->rules, ret->rule, &s->firings, control, s->now, ret->why, &ret->next);
	if (running || allowed)
		*ret->why = '\0';
	if (ret->rule->off)
		ret->state = "off";
	else if (control->paused || (own && own->paused))
		ret->state = "paused";
	else if (running)
		ret->state = "running";
	else if (b->failures > 0 && use.failures >= b->failures)
		ret->state = "stopped";
	else
		ret->state = queued ? (allowed ? "queued" : "waits") : "ready";
	if (cursor && cursor->problem && *ret->why == '\0' && !ret->rule->off)
		snprintf(ret->why, sizeof(ret->why), "its trigger cannot be looked at: %.150s",
			 cursor->problem);
	if (cursor && cursor->partial && *ret->why == '\0')
		snprintf(ret->why, sizeof(ret->why),
			 "not all of its directories can be watched: it looks once a minute");
	if (ret->rule->trigger == ENGINE_TRIGGER_SCHEDULE && ret->next == 0 && cursor &&
	    calendar_next(&ret->rule->calendar, (cursor->known ? cursor->since : s->now) / NS_PER_S,
			  &due) == 0)
		ret->next = due * NS_PER_S;
}

/* --- all of them --------------------------------------------------------------------------- */

/* Leave out what people and agents ship. */
static void keep_ours(struct engine_changes *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (strncmp(l->list[i].who, "watch:", 6) != 0)
			engine_change_done(&l->list[i]);
		else
			l->list[n++] = l->list[i];
	l->n = n;
}

static int load(struct engine *e, struct engine_watch_status *s, struct watch_state *state,
		struct watch_control *control, struct err *err)
{
	struct err problem = { 0 };
	int r = watch_state_load(e, NULL, state, &s->running, err);

	if (r < 0)
		return r;
	r = watch_control_load(e, control, err);
	if (r < 0)
		return r;
	r = engine_watch_log(e, &s->firings, err);
	if (r < 0)
		return r;
	r = engine_changes(e, true, &s->changes, err);
	if (r < 0)
		return r;
	keep_ours(&s->changes);
	s->paused = control->paused;
	s->pid = s->running ? state->pid : 0;
	s->started = s->running ? state->started : 0;
	s->now = pipeline_now();
	/* What cannot be understood is part of the answer. */
	r = engine_watch_rules(e, &s->rules, &problem);
	if (r >= 0 || r == -ENOMEM)
		return r;
	s->problem = strdup(problem.msg);
	return s->problem ? 0 : err_nomem(err);
}

int engine_watch_status(struct engine *e, struct engine_watch_status *ret, struct err *err)
{
	CLEANUP(engine_watch_status_done) struct engine_watch_status s = { 0 };
	CLEANUP(watch_state_done) struct watch_state state = { 0 };
	CLEANUP(watch_control_done) struct watch_control control = { 0 };
	int r = load(e, &s, &state, &control, err);

	if (r < 0)
		return r;
	s.list = calloc(s.rules.n + 1, sizeof(*s.list));
	if (!s.list)
		return err_nomem(err);
	for (s.n = 0; s.n < s.rules.n; s.n++) {
		const struct watch_cursor *c = watch_cursor(&state, &s.rules.list[s.n], s.now);

		s.rules.list[s.n].probed_ms = c ? c->probed_ms : 0;
		s.rules.list[s.n].probed_since = c ? c->probed_since : 0;
		s.list[s.n].rule = &s.rules.list[s.n];
		describe(&s, &control, &state, &s.list[s.n]);
	}
	*ret = TAKE_STRUCT(s);
	return 0;
}

int engine_watch_test(struct engine *e, const char *name, struct engine_watch_test *ret,
		      struct err *err)
{
	CLEANUP(engine_watch_rules_done) struct engine_rules_of_watch rules = { 0 };
	CLEANUP(engine_firings_done) struct engine_firings firings = { 0 };
	CLEANUP(watch_control_done) struct watch_control control = { 0 };
	const struct engine_rule *rule = NULL;
	int64_t until;
	int r = engine_watch_rules(e, &rules, err);

	if (r < 0)
		return r;
	rule = rules_find(&rules, name);
	if (!rule)
		return err_set(err, -ENOENT, "there is no rule '%.100s' in '%s'", name, rules.file);
	r = engine_watch_log(e, &firings, err);
	if (r >= 0)
		r = watch_control_load(e, &control, err);
	if (r < 0)
		return r;
	if (budget_allows(&rules, rule, &firings, &control, pipeline_now(), ret->held, &until))
		*ret->held = '\0';
	return action_try(e, &rules, rule, ret, err);
}
