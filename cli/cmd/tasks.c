#include <string.h>

#include "cli/out.h"
#include "cli/show/tasks.h"
#include "cli/unborn.h"

static int print_json(const struct invocation *inv, const struct tasks *t, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct json list = json_set_array(out_json_begin(inv, &doc), "tasks");

	for (size_t i = 0; i < t->n; i++) {
		const struct json one = json_add_object(list);

		json_set_text(one, "task", t->list[i].name);
		json_set_text(one, "command", t->list[i].line);
		json_set_text(one, "source", t->list[i].source);
	}
	return json_print(&doc, inv->out, err);
}

static void print_human(const struct invocation *inv, const struct tasks *t)
{
	int width = (int)strlen("TASK");

	for (size_t i = 0; i < t->n; i++)
		if ((int)strlen(t->list[i].name) > width)
			width = (int)strlen(t->list[i].name);
	fprintf(inv->out, "%s%-*s  %-14s  %s%s\n", out_style(inv, OUT_DIM), width, "TASK",
		"FOUND IN", "COMMAND", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < t->n; i++) {
		fprintf(inv->out, "%-*s  %-14s  ", width, t->list[i].name, t->list[i].source);
		out_line(inv->out, t->list[i].line);
		fputc('\n', inv->out);
	}
}

static int tasks_run(struct invocation *inv, struct err *err)
{
	CLEANUP(tasks_done) struct tasks t = { 0 };
	int r = tasks_load(inv, &t, err);

	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &t, err);
	if (t.n == 0)
		unborn_empty(inv, "no command has a name here", "help tasks");
	else if (!inv->quiet)
		print_human(inv, &t);
	for (size_t i = 0; i < t.n && inv->quiet; i++)
		fprintf(inv->out, "%s\n", t.list[i].name);
	return CMD_OK;
}

const struct command cmd_tasks = {
	.name = "tasks",
	.group = "Runs",
	.rare = true,
	.summary = "list commands that have a name here, for `run @NAME`",
	.details =
	    "Yours come first: 'tasks' in ~/.config/snapcow/config.yaml. Then scripts of\n"
	    "package.json, targets of the Makefile, tasks of pyproject.toml, and what cargo and\n"
	    "meson offer. snap reads them in the project and runs them on the clone. -q prints\n"
	    "names alone.\n",
	.examples = "tasks\nrun @test\nrun idea -- @test --verbose\n",
	.run = tasks_run,
};
