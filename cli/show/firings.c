#include "cli/show/firings.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "cli/show/changes.h"
#include "cli/show/verdicts.h"

#define DAY_NS (INT64_C(24) * 3600 * 1000000000)

/* --- JSON ---------------------------------------------------------------------------------- */

void firings_set(struct json j, const struct engine_firing *f)
{
	json_set_text(j, "firing", f->id);
	json_set_name(j, "rule", f->rule);
	json_set_name(j, "project", f->project);
	json_set_text(j, "trigger", engine_trigger_name(f->trigger));
	json_set_text(j, "detail", f->detail);
	out_json_time(j, "time", f->created);
	json_set_uint(j, "merged", f->merged);
	json_set_names(j, "paths", f->paths, f->n_paths);
	json_set_uint(j, "more_paths", f->more_paths);
	json_set_text(j, "state", engine_firing_state_name(f->state));
	json_set_bool(j, "running", f->alive);
	json_set_uint(j, "attempts", f->attempts);
	out_json_time_or_null(j, "begun", f->begun);
	out_json_time_or_null(j, "ended", f->ended);
	json_set_name(j, "clone", f->clone);
	json_set_text(j, "run", *f->run ? f->run : NULL);
	json_set_int(j, "exit_code", f->exit_code);
	json_set_uint(j, "cpu_ms", f->cpu_ms);
	json_set_uint(j, "duration_ms", f->duration_ms);
	json_set_uint(j, "files", f->files);
	json_set_uint(j, "lines", f->lines);
	json_set_text(j, "signature", *f->signature ? f->signature : NULL);
	json_set_text(j, "then", engine_then_name(f->then));
	json_set_text(j, "result", f->result);
	json_set_text(j, "why", f->why);
	out_json_id(j, "change", f->change);
}

static void set_rule(struct json j, const struct engine_rule_status *r)
{
	struct json spent;

	json_set_name(j, "rule", r->rule->name);
	json_set_name(j, "project", r->rule->project);
	json_set_text(j, "trigger", engine_trigger_name(r->rule->trigger));
	json_set_text(j, "then", engine_then_name(r->rule->then));
	json_set_text(j, "state", r->state);
	json_set_text(j, "why", *r->why ? r->why : NULL);
	out_json_time_or_null(j, "next", r->next);
	out_json_time_or_null(j, "last", r->last);
	json_set_uint(j, "fired", r->fired);
	json_set_uint(j, "landed", r->landed);
	json_set_uint(j, "failed", r->failed);
	json_set_uint(j, "failures_in_a_row", r->failures);
	spent = json_set_object(j, "spent");
	json_set_uint(spent, "runs_hour", r->runs_hour);
	json_set_uint(spent, "cpu_day_ms", r->cpu_day_ms);
}

void firings_set_status(struct json j, const struct engine_watch_status *s)
{
	json_set_bool(j, "running", s->running);
	json_set_bool(j, "paused", s->paused);
	json_set_int(j, "pid", s->pid);
	out_json_time_or_null(j, "started", s->started);
	json_set_name(j, "file", s->rules.file);
	json_set_text(j, "problem", s->problem);
	JSON_SET_LIST(j, "rules", s->list, s->n, set_rule);
	JSON_SET_LIST(j, "firings", s->firings.list, s->firings.n, firings_set);
	JSON_SET_LIST(j, "changes", s->changes.list, s->changes.n, changes_set);
}

void firings_set_test(struct json j, const struct engine_watch_test *t)
{
	struct json stages;

	firings_set(json_set_object(j, "firing"), &t->firing);
	json_set_text(j, "held", *t->held ? t->held : NULL);
	json_set_text(j, "risk", t->judged ? engine_risk_name(t->verdict.facts.risk) : NULL);
	json_set_text(j, "verdict", t->judged ? engine_authority_name(t->verdict.then) : NULL);
	json_set_text(j, "problem", t->problem);
	verdicts_set_steps(json_set_array(j, "steps"), &t->verdict);
	stages = json_set_array(j, "stages");
	for (size_t i = 0; i < t->n_stages; i++) {
		const struct engine_outlook *o = &t->stages[i];
		const struct json one = json_add_object(stages);

		json_set_name(one, "stage", o->stage);
		json_set_text(one, "then", o->then);
		json_set_text(one, "why", o->why);
		json_set_uint(one, "checks", o->checks);
		json_set_names(one, "approvers", o->approvers, o->n_approvers);
	}
}

/* --- people -------------------------------------------------------------------------------- */

static const char *word_of(const struct engine_firing *f)
{
	return f->result ? f->result : f->alive ? "running" : engine_firing_state_name(f->state);
}

void firings_print(struct invocation *inv, const struct engine_firing *f)
{
	char when[OUT_TIME_MAX], cost[DURATION_TEXT_MAX];

	fprintf(inv->out, "%.*s  %s  ", OUT_SHORT_ID, f->id,
		out_minute(f->created / 1000000000, when));
	out_name(inv->out, f->rule);
	fprintf(inv->out, " (%s", engine_trigger_name(f->trigger));
	if (f->merged > 0)
		fprintf(inv->out, ", %" PRIu64 " at once", f->merged + 1);
	if (f->n_paths + f->more_paths > 0) {
		fputs(", ", inv->out);
		out_plural(inv->out, f->n_paths + f->more_paths, "path", "paths");
	}
	fprintf(inv->out, "): %s", word_of(f));
	if (*f->change != '\0')
		fprintf(inv->out, " as %.*s", OUT_SHORT_ID, f->change);
	if (f->files > 0)
		fprintf(inv->out, ", %" PRIu64 " files, %" PRIu64 " lines", f->files, f->lines);
	if (f->cpu_ms > 0)
		fprintf(inv->out, ", %s of processor time", duration_format(f->cpu_ms, cost));
	fputc('\n', inv->out);
	if (f->why) {
		fputs("          ", inv->out);
		out_line(inv->out, f->why);
		fputc('\n', inv->out);
	}
}

static void print_rule(struct invocation *inv, const struct engine_rule_status *r)
{
	char when[OUT_TIME_MAX], cost[DURATION_TEXT_MAX];

	fprintf(inv->out, "%-16s %-8s %-8s", r->rule->name, engine_trigger_name(r->rule->trigger),
		r->state);
	fprintf(inv->out, " fired %" PRIu64 ", landed %" PRIu64 ", failed %" PRIu64 ", %s",
		r->fired, r->landed, r->failed, duration_format(r->cpu_day_ms, cost));
	if (r->next > 0)
		fprintf(inv->out, "; next %s", out_minute(r->next / 1000000000, when));
	fputc('\n', inv->out);
	if (*r->why != '\0') {
		fputs("                 ", inv->out);
		out_line(inv->out, r->why);
		fputc('\n', inv->out);
	}
}

static void print_changes(struct invocation *inv, const struct engine_watch_status *s,
			  enum engine_change_state state, const char *title)
{
	bool any = false;

	for (size_t i = 0; i < s->changes.n; i++) {
		const struct engine_change *c = &s->changes.list[i];

		if (c->state != state || c->created <= s->now - 14 * DAY_NS)
			continue;
		if (!any)
			fprintf(inv->out, "\n%s\n", title);
		any = true;
		changes_print(inv, c);
	}
}

void firings_print_status(struct invocation *inv, const struct engine_watch_status *s)
{
	char when[OUT_TIME_MAX];
	bool any = false;

	if (s->running)
		fprintf(inv->out, "Watching since %s (process %" PRId64 ")%s\n",
			out_minute(s->started / 1000000000, when), s->pid,
			s->paused ? ", paused" : "");
	else
		fprintf(inv->out, "Not watching: no process follows the rules%s\n",
			s->paused ? ", and they are paused" : "");
	if (s->problem) {
		fputs("No rule fires: ", inv->out);
		out_line(inv->out, s->problem);
		fputc('\n', inv->out);
	}
	if (s->n > 0)
		fputs("\nRules, and their last 24 hours\n", inv->out);
	for (size_t i = 0; i < s->n; i++)
		print_rule(inv, &s->list[i]);
	for (size_t i = 0; i < s->firings.n; i++) {
		if (s->firings.list[i].created <= s->now - DAY_NS)
			continue;
		if (!any)
			fputs("\nWhat fired\n", inv->out);
		any = true;
		firings_print(inv, &s->firings.list[i]);
	}
	print_changes(inv, s, ENGINE_CHANGE_WAITING, "Waits for a person");
	print_changes(inv, s, ENGINE_CHANGE_HELD, "Held");
	print_changes(inv, s, ENGINE_CHANGE_SOAKING, "Landed, and watched");
	print_changes(inv, s, ENGINE_CHANGE_SICK, "Turned sick, undone and barred");
	print_changes(inv, s, ENGINE_CHANGE_SHIPPED, "Landed");
}

static void print_outlook(struct invocation *inv, const struct engine_outlook *o)
{
	fputs("  stage ", inv->out);
	out_name(inv->out, o->stage);
	fprintf(inv->out, ": %s%s", o->checks > 0 ? "if its checks pass, " : "",
		strcmp(o->then, "held") == 0 ? "is held" : o->then);
	if (strcmp(o->then, "waits") == 0 && o->n_approvers == 0)
		fputs(" for the owner of the store", inv->out);
	for (size_t i = 0; i < o->n_approvers; i++) {
		fputs(i > 0 ? " or " : " for ", inv->out);
		out_name(inv->out, o->approvers[i]);
	}
	fputs("; ", inv->out);
	out_line(inv->out, o->why);
	if (o->elsewhere)
		fputs(" (judged by the project; its target may differ)", inv->out);
	fputc('\n', inv->out);
}

void firings_print_test(struct invocation *inv, const struct engine_watch_test *t)
{
	const struct engine_firing *f = &t->firing;

	if (*t->held != '\0')
		fprintf(inv->out, "It would not begin now: %s.\n", t->held);
	fprintf(inv->out,
		"The action ended with %" PRId64 " and changed %" PRIu64 " files, %" PRIu64
		" lines.\n",
		f->exit_code, f->files, f->lines);
	if (f->why) {
		out_line(inv->out, f->why);
		fputc('\n', inv->out);
	}
	if (f->result)
		fprintf(inv->out, "Result: %s.\n", f->result);
	else
		fprintf(inv->out, "It would be shipped as watch:%s.\n", f->rule);
	if (t->problem) {
		fputs("It could not be, and its clone would be kept: ", inv->out);
		out_line(inv->out, t->problem);
		fputc('\n', inv->out);
	}
	for (size_t i = 0; i < t->n_stages; i++)
		print_outlook(inv, &t->stages[i]);
	if (!t->judged)
		return;
	fprintf(inv->out, "Risk: %s. The policy says: %s, by these rules:\n",
		engine_risk_name(t->verdict.facts.risk), engine_authority_name(t->verdict.then));
	verdicts_print_steps(inv, &t->verdict);
}
