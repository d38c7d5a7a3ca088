#include "cli/out.h"
#include "engine/api/projects.h"

static int print_json(const struct invocation *inv, const struct engine_projects *p,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list = json_set_array(j, "projects"), one;

	for (size_t i = 0; i < p->n; i++) {
		one = json_add_object(list);
		json_set_text(one, "project", p->list[i].id);
		json_set_name(one, "path", p->list[i].path);
		json_set_bool(one, "missing", p->list[i].missing);
		out_json_time(one, "created", p->list[i].created);
		json_set_uint(one, "snapshots", p->list[i].snapshots);
		json_set_uint(one, "clones", p->list[i].clones);
	}
	return json_print(&doc, inv->out, err);
}

static void print_human(const struct invocation *inv, const struct engine_projects *p)
{
	char snapshots[OUT_COUNT_MAX], clones[OUT_COUNT_MAX], when[OUT_TIME_MAX];

	if (p->n == 0)
		fputs("no projects yet\n", inv->out);
	else
		fprintf(inv->out, "%s%9s  %6s  %-16s  %s%s\n", out_style(inv, OUT_DIM), "SNAPSHOTS",
			"CLONES", "SINCE", "PATH", out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < p->n; i++) {
		const struct engine_project *one = &p->list[i];

		fprintf(inv->out, "%9s  %6s  %-16s  ", out_count(one->snapshots, snapshots),
			out_count(one->clones, clones), out_when(one->created, when));
		out_name(inv->out, one->path);
		fputs(one->missing ? "  (there is no such directory)\n" : "\n", inv->out);
	}
}

static int projects_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_projects_done) struct engine_projects projects = { 0 };
	int r = engine_projects(inv->engine, &projects, err);

	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &projects, err);
	if (!inv->quiet)
		print_human(inv, &projects);
	for (size_t i = 0; inv->quiet && i < projects.n; i++) {
		out_name(inv->out, projects.list[i].path);
		fputc('\n', inv->out);
	}
	return CMD_OK;
}

const struct command cmd_projects = {
	.name = "projects",
	.group = "Store",
	.summary = "list the projects that the store knows",
	.details =
	    "One whose directory is gone is marked: its snapshots and clones are still there. -q\n"
	    "prints paths alone.\n",
	.examples = "projects\nprojects --json\n",
	.run = projects_run,
};
