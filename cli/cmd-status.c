#include <errno.h>

#include "base/size.h"
#include "cli/clones.h"

static int print_clone_json(const struct invocation *inv, const struct engine_clone *c,
			    struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), part;

	clones_set_json(j, c);
	if (c->compared) {
		part = json_set_object(j, "changed");
		json_set_uint(part, "added", c->added);
		json_set_uint(part, "modified", c->modified);
		json_set_uint(part, "deleted", c->deleted);
	} else {
		json_set_null(j, "changed");
	}
	if (c->stale.known) {
		part = json_set_object(j, "stale");
		json_set_uint(part, "behind_ms", c->stale.behind_ms);
		json_set_uint(part, "paths", c->stale.paths);
		out_json_time(part, "as_of", c->stale.as_of);
	} else {
		json_set_null(j, "stale");
	}
	json_set_uint(j, "used", c->used);
	json_set_null(j, "last_run");
	return json_print(&doc, inv->out, err);
}

/* What a project has no answer to yet is null. */
static int print_project_json(const struct invocation *inv, const struct engine_overview *o,
			      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_null(j, "clone");
	json_set_name(j, "project", o->path);
	out_json_id(j, "base", o->newest);
	json_set_null(j, "changed");
	json_set_null(j, "stale");
	json_set_null(j, "quota");
	json_set_null(j, "used");
	json_set_uint(j, "snapshots", o->snapshots);
	json_set_uint(j, "clones", o->clones);
	json_set_uint(j, "mounted", o->mounted);
	return json_print(&doc, inv->out, err);
}

static void print_field(const struct invocation *inv, const char *name)
{
	fprintf(inv->out, "%s%-9s%s", out_style(inv, OUT_DIM), name, out_style(inv, OUT_PLAIN));
}

static void print_name_field(const struct invocation *inv, const char *field, const char *name)
{
	print_field(inv, field);
	out_name(inv->out, name);
	fputc('\n', inv->out);
}

static void print_stale(const struct invocation *inv, const struct engine_stale *s)
{
	char when[OUT_TIME_MAX], behind[DURATION_TEXT_MAX];

	print_field(inv, "behind");
	if (!s->known) {
		fputs("not known\n", inv->out);
		return;
	}
	if (s->paths == 0) {
		fputs("nothing", inv->out);
	} else {
		out_plural(inv->out, s->paths, "path", "paths");
		fprintf(inv->out, ", %s", duration_format(s->behind_ms, behind));
	}
	fprintf(inv->out, ", as of the project's snapshot of %s\n", out_when(s->as_of, when));
}

static void print_clone(const struct invocation *inv, const struct engine_clone *c)
{
	char when[OUT_TIME_MAX], expiry[CLONES_EXPIRY_MAX], used[SIZE_TEXT_MAX];
	char quota[SIZE_TEXT_MAX];

	print_name_field(inv, "clone", c->name);
	print_name_field(inv, "path", c->path);
	print_name_field(inv, "project", c->project);
	print_field(inv, "base");
	fprintf(inv->out, "%s%.*s%s\n", out_style(inv, OUT_ID), OUT_SHORT_ID, c->base,
		out_style(inv, OUT_PLAIN));
	print_field(inv, "created");
	fprintf(inv->out, "%s\n", out_when(c->created, when));
	print_field(inv, "expires");
	fprintf(inv->out, "%s\n", clones_expiry(c, expiry));
	print_field(inv, "mounted");
	fprintf(inv->out, "%s\n", c->mounted ? "yes" : "no");
	print_field(inv, "changed");
	clones_print_changes(inv->out, c);
	fputc('\n', inv->out);
	print_field(inv, "grown");
	fprintf(inv->out, "%s", size_format(c->used, used));
	if (c->quota > 0)
		fprintf(inv->out, " of %s\n", size_format(c->quota, quota));
	else
		fputs(", no limit\n", inv->out);
	print_stale(inv, &c->stale);
}

static void print_project(const struct invocation *inv, const struct engine_overview *o)
{
	char when[OUT_TIME_MAX];

	print_name_field(inv, "project", o->path);
	print_field(inv, "newest");
	fprintf(inv->out, "%s%.*s%s, %s\n", out_style(inv, OUT_ID), OUT_SHORT_ID, o->newest,
		out_style(inv, OUT_PLAIN), out_when(o->newest_time, when));
	print_field(inv, "has");
	out_plural(inv->out, o->snapshots, "snapshot", "snapshots");
	fputs(", ", inv->out);
	out_plural(inv->out, o->clones, "clone", "clones");
	fputs(", ", inv->out);
	fprintf(inv->out, "%llu mounted\n", (unsigned long long)o->mounted);
}

static int status_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_clone_done) struct engine_clone clone = { 0 };
	CLEANUP(engine_overview_done) struct engine_overview project = { 0 };
	int r;

	r = engine_status(inv->engine, inv->n_words > 0 ? inv->words[0] : NULL, &clone, &project,
			  err);
	clones_hint(inv, r, NULL, NULL);
	if (r < 0)
		return r;
	if (inv->json)
		return clone.name ? print_clone_json(inv, &clone, err)
				  : print_project_json(inv, &project, err);
	if (clone.name)
		print_clone(inv, &clone);
	else
		print_project(inv, &project);
	return CMD_OK;
}

const struct command cmd_status = {
	.name = "status",
	.group = "Clones",
	.summary = "say what changed in a clone and how far behind it is",
	.words = "[CLONE]",
	.max_words = 1,
	.details =
	    "Without CLONE: of the clone that holds the current directory, else an overview of the\n"
	    "project. What is known of the project is its newest snapshot.\n",
	.examples = "status try\nstatus --json\n",
	.run = status_run,
};
