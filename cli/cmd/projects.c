#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fail.h"
#include "cli/out.h"
#include "engine/api/projects.h"

struct projects_args {
	bool force;
};

static const struct opt projects_opts[] = {
	OPT_FLAG('f', "force", struct projects_args, force,
		 "forget: its clones and artifacts too; mv: even if the old directory exists"),
	OPT_END,
};
_Static_assert(sizeof(struct projects_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const char *act,
		      const struct engine_projects *p, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list, one;

	json_set_text(j, "act", act);
	list = json_set_array(j, "projects");
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

static int list(struct invocation *inv, struct engine_projects *projects, struct err *err)
{
	if (inv->json)
		return print_json(inv, "list", projects, err);
	if (!inv->quiet)
		print_human(inv, projects);
	for (size_t i = 0; inv->quiet && i < projects->n; i++)
		out_name_line(inv->out, projects->list[i].path);
	return CMD_OK;
}

/* The one that it was done to. */
static int print_done(const struct invocation *inv, const char *act, struct engine_project *one,
		      struct err *err)
{
	const struct engine_projects alone = { .list = one, .n = 1 };

	if (inv->json)
		return print_json(inv, act, &alone, err);
	if (inv->quiet)
		return CMD_OK;
	fprintf(inv->out, "%s  ", strcmp(act, "mv") == 0 ? "moved to" : "forgotten");
	out_name(inv->out, one->path);
	if (strcmp(act, "mv") != 0) {
		fputs(", with ", inv->out);
		out_plural(inv->out, one->snapshots, "snapshot", "snapshots");
		fputs(" and ", inv->out);
		out_plural(inv->out, one->clones, "clone", "clones");
	}
	fputc('\n', inv->out);
	return CMD_OK;
}

static int forget(struct invocation *inv, struct engine_project *one, struct err *err)
{
	const struct projects_args *args = inv->args;
	int r = engine_project_forget(inv->engine, one->id, args->force, err);

	if (r == -EBUSY)
		cmd_hint(inv, one->clones > 0 ? "list --all" : "artifact list");
	return r < 0 ? r : print_done(inv, "forget", one, err);
}

static int move(struct invocation *inv, struct engine_project *one, struct err *err)
{
	const struct projects_args *args = inv->args;
	char *path;
	int r = engine_project_move(inv->engine, one->id, inv->words[2], args->force, &path, err);

	if (r < 0)
		return r;
	free(one->path);
	one->path = path;
	one->missing = false;
	return print_done(inv, "mv", one, err);
}

static int projects_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_projects_done) struct engine_projects projects = { 0 };
	const char *what = inv->n_words > 0 ? inv->words[0] : "list";
	const bool moves = strcmp(what, "mv") == 0, forgets = strcmp(what, "forget") == 0;
	struct engine_project *one;
	int r;

	if (inv->n_words > 0 && !(moves && inv->n_words == 3) && !(forgets && inv->n_words == 2)) {
		cmd_hint(inv, "help projects");
		return err_set(
		    err, -EINVAL,
		    "'projects' takes nothing, 'forget PROJECT' or 'mv PROJECT NEWPATH'");
	}
	r = engine_projects(inv->engine, &projects, err);
	if (r < 0)
		return r;
	if (inv->n_words == 0)
		return list(inv, &projects, err);
	one = engine_projects_find(inv->engine, &projects, inv->words[1]);
	if (!one) {
		cmd_hint(inv, "projects");
		return err_set(err, -ENOENT, "there is no project '%s'", inv->words[1]);
	}
	return moves ? move(inv, one, err) : forget(inv, one, err);
}

const struct command cmd_projects = {
	.name = "projects",
	.group = "Store",
	.rare = true,
	.summary = "list the projects of the store; forget one, or move it",
	.words = "[forget PROJECT | mv PROJECT NEWPATH]",
	.max_words = 3,
	.opts = projects_opts,
	.details =
	    "Marks a project whose directory is gone: its snapshots and clones are still there. -q\n"
	    "prints paths alone. PROJECT is its path or id. 'forget' removes its snapshots, tags\n"
	    "and undos from the store and leaves the directory alone; gc frees the space. It refuses\n"
	    "while there are clones or artifacts (exit code 11). The next command in a renamed\n"
	    "project finds it by itself; 'mv' is for a project that was copied or is on another\n"
	    "disk.\n",
	.examples = "projects\nprojects forget ~/old\nprojects mv ~/app ~/work/app\n",
	.run = projects_run,
};
