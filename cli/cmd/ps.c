#include <string.h>

#include "base/size.h"
#include "cli/show/runs.h"
#include "cli/unborn.h"

#define OTHERS 61 /* columns, without the clone's and the command's */

static int print_json(const struct invocation *inv, const struct engine_runs *runs, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list = json_set_array(j, "runs"), one, use;

	for (size_t i = 0; i < runs->n; i++) {
		const struct engine_run *r = &runs->list[i];
		struct engine_run_use now;

		engine_run_look(r, &now);
		one = json_add_object(list);
		runs_set_json(one, r);
		json_set_int(one, "pid", r->pid);
		json_set_uint_if(one, "left_ms", now.left_ms > 0, now.left_ms);
		if (!now.known) {
			json_set_null(one, "use");
			continue;
		}
		use = json_set_object(one, "use");
		json_set_uint(use, "processes", now.processes);
		json_set_uint(use, "memory", now.memory);
		json_set_uint(use, "cpu_ms", now.cpu_ms);
	}
	return json_print(&doc, inv->out, err);
}

static void print_one(const struct invocation *inv, const struct engine_run *r, int clone_width)
{
	char memory[SIZE_TEXT_MAX], cpu[DURATION_TEXT_MAX], left[DURATION_TEXT_MAX];
	const char *mark = r->detached ? "  (detached)" : "";
	const size_t mark_len = strlen(mark);
	struct engine_run_use use;

	engine_run_look(r, &use);
	fprintf(inv->out, "%s%s%s  %-*s  %7d  %5llu  %10s  %7s  %6s  ", out_style(inv, OUT_ID),
		r->id, out_style(inv, OUT_PLAIN), clone_width, runs_clone(r), (int)r->pid,
		(unsigned long long)use.processes,
		use.known ? size_format(use.memory, memory) : "-",
		use.known ? duration_format(use.cpu_ms, cpu) : "-",
		use.left_ms > 0 ? duration_format(use.left_ms, left) : "-");
	runs_print_command(inv->out, r,
			   runs_command_room(inv, OTHERS + (size_t)clone_width + mark_len));
	fprintf(inv->out, "%s\n", mark);
}

static int ps_run(struct invocation *inv, struct err *err)
{
	const struct engine_runs_options options = { .all = true, .running = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	int r = engine_runs(inv->engine, &options, &runs, err), width = (int)strlen("CLONE");

	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &runs, err);
	for (size_t i = 0; i < runs.n; i++)
		if ((int)strlen(runs_clone(&runs.list[i])) > width)
			width = (int)strlen(runs_clone(&runs.list[i]));
	if (runs.n == 0)
		unborn_empty(inv, "nothing runs now", "runs --all");
	else if (!inv->quiet)
		fprintf(inv->out, "%-12s  %-*s  %7s  %5s  %10s  %7s  %6s  %s\n", "RUN", width,
			"CLONE", "PID", "PROCS", "MEMORY", "CPU", "LEFT", "COMMAND");
	for (size_t i = 0; i < runs.n; i++) {
		if (inv->quiet)
			fprintf(inv->out, "%s\n", runs.list[i].id);
		else
			print_one(inv, &runs.list[i], width);
	}
	return CMD_OK;
}

const struct command cmd_ps = {
	.name = "ps",
	.group = "Runs",
	.rare = true,
	.summary = "list what runs now, and what it uses",
	.details =
	    "Lists runs of all projects in the store. PID is the snap process that holds the run; it\n"
	    "passes signals on to the command.\n",
	.examples = "ps\nps --json\n",
	.run = ps_run,
};
