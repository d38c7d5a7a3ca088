#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "cli/fold.h"
#include "cli/show/clones.h"
#include "cli/show/runs.h"
#include "cli/unborn.h"

struct list_args {
	bool all;
};

static const struct opt list_opts[] = {
	OPT_FLAG('a', "all", struct list_args, all, "clones of every project in the store"),
	OPT_END,
};
_Static_assert(sizeof(struct list_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void set_json(struct json j, const struct engine_clone *c, const struct engine_runs *runs)
{
	clones_set_json(j, c);
	if (c->compared) {
		json_set_uint(j, "changed", c->added + c->modified + c->deleted);
		json_set_uint(j, "added", c->added);
		json_set_uint(j, "modified", c->modified);
		json_set_uint(j, "deleted", c->deleted);
	} else {
		json_set_null(j, "changed");
	}
	json_set_uint(j, "bytes", c->own);
	clones_set_own(j, c);
	json_set_bool_if(j, "stale", c->stale.known, c->stale.paths > 0);
	json_set_uint(j, "runs", runs_count(runs, c));
}

static int print_json(const struct invocation *inv, const struct engine_clones *c, struct err *err)
{
	const struct engine_runs_options options = { .all = true };
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list;
	int r = engine_runs(inv->engine, &options, &runs, err);

	if (r < 0)
		return r;
	json_set_name(j, "project", c->project);
	list = json_set_array(j, "clones");
	for (size_t i = 0; i < c->n; i++)
		set_json(json_add_object(list), &c->list[i], &runs);
	return json_print(&doc, inv->out, err);
}

/* "12 changed", "unchanged" */
static const char *changed_text(const struct engine_clone *c, char text[OUT_COUNT_MAX + 16])
{
	const uint64_t n = c->added + c->modified + c->deleted;
	char count[OUT_COUNT_MAX];

	if (!c->compared)
		return "?";
	if (n == 0)
		return "unchanged";
	snprintf(text, OUT_COUNT_MAX + 16, "%s changed", out_count(n, count));
	return text;
}

struct widths {
	int name, when, changed;
};

static struct widths measure(const struct engine_clones *c)
{
	struct widths w = { (int)strlen("CLONE"), (int)strlen("CREATED"), (int)strlen("CHANGES") };
	char when[OUT_TIME_MAX], changed[OUT_COUNT_MAX + 16];

	for (size_t i = 0; i < c->n; i++) {
		w.name = out_wider(w.name, c->list[i].name);
		w.when = out_wider(w.when, out_when(c->list[i].created, when));
		w.changed = out_wider(w.changed, changed_text(&c->list[i], changed));
	}
	return w;
}

static void print_row(const struct invocation *inv, const struct widths *w,
		      const struct engine_clone *c)
{
	char when[OUT_TIME_MAX], changed[OUT_COUNT_MAX + 16], size[SIZE_TEXT_MAX];
	char expiry[CLONES_EXPIRY_MAX];

	fprintf(inv->out, "%s%-*s%s  %-*s  %-*s  %*s  ", out_style(inv, OUT_ID), w->name, c->name,
		out_style(inv, OUT_PLAIN), w->when, out_when(c->created, when), w->changed,
		changed_text(c, changed), OUT_SIZE_WIDTH,
		c->compared ? size_format(c->own, size) : "?");
	out_name(inv->out, c->path);
	if (c->part) {
		fputs("  (only ", inv->out);
		out_name(inv->out, c->part);
		fputc(')', inv->out);
	}
	if (c->via) {
		fputs("  (", inv->out);
		out_name(inv->out, c->via);
		fputc(')', inv->out);
	}
	if (!c->mounted)
		fputs("  (not mounted)", inv->out);
	if (c->expires != 0)
		fprintf(inv->out, "  (expires %s)", clones_expiry(c, expiry));
	if (c->capturing.open)
		fprintf(inv->out, "  (%s %u %%)", c->capturing.remote ? "fetching" : "capturing",
			engine_captured_percent(&c->capturing));
	if (c->capturing.lost > 0)
		fprintf(inv->out, "  (%" PRIu64 " files lost)", c->capturing.lost);
	if (c->stale.known && c->stale.paths > 0)
		fputs("  (the project has moved on)", inv->out);
	fputc('\n', inv->out);
}

static void print_human(const struct invocation *inv, const struct engine_clones *c)
{
	const struct widths w = measure(c);
	CLEANUP(fold_end) struct fold fold = { 0 };

	if (c->n == 0) {
		fputs("no clones\n", inv->out);
		return;
	}
	fold_begin(&fold, inv, out_columns(fileno(inv->out), 0),
		   (size_t)(w.name + w.when + w.changed + OUT_SIZE_WIDTH) + 4 * strlen("  "));
	inv = &fold.to;
	fprintf(inv->out, "%s%-*s  %-*s  %-*s  %*s  %s%s\n", out_style(inv, OUT_DIM), w.name,
		"CLONE", w.when, "CREATED", w.changed, "CHANGES", OUT_SIZE_WIDTH, "ITS OWN", "PATH",
		out_style(inv, OUT_PLAIN));
	for (size_t i = 0; i < c->n; i++)
		print_row(inv, &w, &c->list[i]);
}

static int list_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_clones_done) struct engine_clones clones = { 0 };
	const struct list_args *args = inv->args;
	int r = engine_clone_list(inv->engine, args->all, &clones, err);

	r = unborn_or(inv, r, "no clones yet", &clones.project, err);
	if (r != 0)
		return r < 0 ? r : CMD_OK;
	if (inv->json)
		return print_json(inv, &clones, err);
	if (!inv->quiet)
		print_human(inv, &clones);
	for (size_t i = 0; i < clones.n && inv->quiet; i++)
		fprintf(inv->out, "%s\n", clones.list[i].name);
	return CMD_OK;
}

const struct command cmd_list = {
	.name = "list",
	.alias = "ls",
	.group = "Clones",
	.summary = "list the clones of the project (ls)",
	.opts = list_opts,
	.details = "-q prints names alone.\n",
	.examples = "list\nls --all --json\n",
	.run = list_run,
};
