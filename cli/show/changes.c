#include "cli/show/changes.h"

#include <string.h>

#include "engine/api/desk.h"

/* --- JSON ---------------------------------------------------------------------------------- */

static const struct engine_passed *last_passed(const struct engine_change *c)
{
	return c->n_passed > 0 ? &c->passed[c->n_passed - 1] : NULL;
}

#define HELD_MAX 20 /* paths that are named */

static void set_waits_for(struct json j, const struct engine_change *c)
{
	struct json w;

	if (c->state != ENGINE_CHANGE_WAITING && c->state != ENGINE_CHANGE_SOAKING) {
		json_set_null(j, "waits_for");
		return;
	}
	w = json_set_object(j, "waits_for");
	json_set_text(w, "kind", c->state == ENGINE_CHANGE_WAITING ? "approval" : "time");
	json_set_names(w, "approvers", c->approvers, c->n_approvers);
	out_json_time_or_null(w, "until",
			      c->state == ENGINE_CHANGE_SOAKING ? last_passed(c)->soak_until : 0);
	json_set_bool(w, "approved", c->approved_by != NULL);
}

static void set_passed(struct json j, const struct engine_passed *p)
{
	const struct json checks = json_set_array(j, "checks");

	json_set_name(j, "stage", p->stage);
	json_set_name(j, "target", p->target);
	out_json_id(j, "receipt", p->receipt);
	out_json_id(j, "sha256", p->sha256);
	out_json_id(j, "commit", p->commit);
	for (size_t i = 0; i < p->n_checks; i++) {
		const struct json one = json_add_object(checks);

		json_set_name(one, "cmd", p->checks[i].command);
		json_set_int(one, "exit_code", p->checks[i].exit_code);
		json_set_text(one, "run", p->checks[i].run);
	}
	json_set_name(j, "approved_by", p->approved_by);
	json_set_text(j, "reason", p->reason);
	out_json_time(j, "time", p->passed);
	out_json_time_or_null(j, "soak_until", p->soak_until);
	json_set_uint(j, "health_runs", p->health_runs);
	json_set_bool(j, "undone", p->undone);
	json_set_text(j, "link", p->link);
}

void changes_set(struct json j, const struct engine_change *c)
{
	json_set_text(j, "change", c->id);
	json_set_name(j, "clone", c->clone);
	json_set_name(j, "project", c->project);
	json_set_name(j, "who", c->who);
	json_set_text(j, "sha256", c->sha256);
	json_set_text(j, "base", c->base);
	json_set_text(j, "snapshot", c->state_id);
	out_json_time(j, "created", c->created);
	json_set_text(j, "state", engine_change_state_name(c->state));
	json_set_name(j, "stage", c->stage);
	json_set_name(j, "to", c->to);
	json_set_text(j, "obstacle", c->obstacle);
	json_set_text(j, "why", c->why);
	json_set_text(j, "risk", c->risk);
	set_waits_for(j, c);
	JSON_SET_LIST(j, "receipts", c->passed, c->n_passed, set_passed);
}

/* --- for people ---------------------------------------------------------------------------- */

static void print_passed(const struct invocation *inv, const struct engine_passed *p)
{
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "  %s%s%s %s", out_style(inv, p->undone ? OUT_BAD : OUT_GOOD),
		p->undone ? "undone" : "passed", out_style(inv, OUT_PLAIN), p->stage);
	if (p->target) {
		fputs(" in ", inv->out);
		out_name(inv->out, p->target);
	}
	fprintf(inv->out, ", %s", out_when(p->passed, when));
	if (p->n_checks > 0) {
		fputs(", ", inv->out);
		out_plural(inv->out, p->n_checks, "check", "checks");
	}
	if (p->approved_by) {
		fputs(", approved by ", inv->out);
		out_name(inv->out, p->approved_by);
	}
	fputc('\n', inv->out);
}

static void print_why(const struct invocation *inv, const struct engine_change *c)
{
	if (!c->why)
		return;
	fputs(": ", inv->out);
	out_line(inv->out, c->why);
}

static void print_approvers(const struct invocation *inv, const struct engine_change *c)
{
	AUTO_FREE char *address = engine_desk_find(inv->engine);

	fputs("  waits for ", inv->out);
	for (size_t i = 0; i < c->n_approvers; i++) {
		fputs(i > 0 ? ", " : "", inv->out);
		out_line(inv->out, c->approvers[i]);
	}
	fputs(c->n_approvers == 0 ? "the owner of the store" : "", inv->out);
	print_why(inv, c);
	fprintf(inv->out, "\n  snap approve %.*s, or snap reject %.*s -m WHY\n", OUT_SHORT_ID,
		c->id, OUT_SHORT_ID, c->id);
	if (c->n_approvers > 0 && address)
		fprintf(inv->out, "  others: snap approve --at %s %.*s\n", address, OUT_SHORT_ID,
			c->id);
	else if (c->n_approvers > 0)
		fputs("  others can do so while 'snap pipeline serve' runs\n", inv->out);
}

/* An approval lets them pass the guard, so they are named. */
static void print_held(const struct invocation *inv, const struct engine_change *c)
{
	for (size_t i = 0; i < c->n_held && i < HELD_MAX; i++) {
		fputs("\n  held by the guard: ", inv->out);
		out_name(inv->out, c->held[i]);
	}
	if (c->n_held > HELD_MAX)
		fprintf(inv->out, "\n  and %zu more", c->n_held - HELD_MAX);
}

void changes_print_asked(struct invocation *inv, const struct engine_change *c, const char *at)
{
	out_id(inv, "", c->id);
	fputs(" of ", inv->out);
	out_name(inv->out, c->project);
	fputs(", asked by ", inv->out);
	out_name(inv->out, c->who);
	fputs(": waits at stage ", inv->out);
	out_line(inv->out, c->stage ? c->stage : "");
	if (c->risk) {
		fputs(", risk ", inv->out);
		out_line(inv->out, c->risk);
	}
	print_why(inv, c);
	print_held(inv, c);
	fputs("\n  snap approve --at ", inv->out);
	out_name(inv->out, at);
	fputs(" --stage ", inv->out);
	out_name(inv->out, c->stage ? c->stage : "");
	fprintf(inv->out, " [--show] %.*s\n", OUT_SHORT_ID, c->id);
}

static void print_soak(const struct invocation *inv, const struct engine_change *c)
{
	const struct engine_passed *p = last_passed(c);
	char when[OUT_TIME_MAX];

	fprintf(inv->out, "  soaks until %s, ", out_minute(p->soak_until / 1000000000, when));
	out_plural(inv->out, p->health_runs, "healthy round so far\n", "healthy rounds so far\n");
}

void changes_print(struct invocation *inv, const struct engine_change *c)
{
	FILE *out = inv->out;

	out_id(inv, "", c->id);
	fputs(" of clone ", out);
	out_name(out, c->clone);
	fprintf(out, ": %s%s%s", out_style(inv, OUT_BOLD), engine_change_state_name(c->state),
		out_style(inv, OUT_PLAIN));
	if (c->stage && c->state != ENGINE_CHANGE_SOAKING)
		fprintf(out, " at stage %s", c->stage);
	if (c->risk)
		fprintf(out, ", risk %s", c->risk);
	if (c->state == ENGINE_CHANGE_WAITING)
		print_held(inv, c);
	fputc('\n', out);
	for (size_t i = 0; i < c->n_passed; i++)
		print_passed(inv, &c->passed[i]);
	if (c->state == ENGINE_CHANGE_WAITING && !c->approved_by)
		print_approvers(inv, c);
	else if (c->state == ENGINE_CHANGE_SOAKING)
		print_soak(inv, c);
	else if (c->why) {
		fputs("  ", out);
		out_line(out, c->why);
		fputc('\n', out);
	}
}

void changes_print_list(struct invocation *inv, const struct engine_changes *l)
{
	for (size_t i = 0; i < l->n; i++)
		changes_print(inv, &l->list[i]);
	if (l->n == 0)
		fputs("no changes are on their way\n", inv->out);
}

int changes_exit(const struct engine_change *c)
{
	const char *o = c->obstacle ? c->obstacle : "";

	switch (c->state) {
	case ENGINE_CHANGE_WAITING:
		return CMD_WAITS;
	case ENGINE_CHANGE_HELD:
		return strcmp(o, "check") == 0      ? CMD_CHECK_FAILED
		       : strcmp(o, "conflict") == 0 ? CMD_CONFLICT
		       : strcmp(o, "receipt") == 0  ? CMD_STALE
						    : CMD_REFUSED;
	case ENGINE_CHANGE_REJECTED:
		return CMD_REFUSED;
	case ENGINE_CHANGE_SICK:
		return CMD_CHECK_FAILED;
	case ENGINE_CHANGE_READY:
	case ENGINE_CHANGE_LANDING:
	case ENGINE_CHANGE_SOAKING:
	case ENGINE_CHANGE_SHIPPED:
	case ENGINE_CHANGE_UNDOING:
		break;
	}
	return CMD_OK;
}
