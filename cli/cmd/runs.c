#include <string.h>

#include "base/size.h"
#include "cli/fold.h"
#include "cli/show/calls.h"
#include "cli/show/runs.h"
#include "cli/unborn.h"

#define SHOWN_RUNS 20 /* unless more are asked for */
#define ID_WIDTH   12

struct runs_args {
	uint64_t last;
	bool all, agent;
};

static const struct opt runs_opts[] = {
	OPT_U64('n', "last", "N", struct runs_args, last,
		"the last N (default: 20; with --json: all; 0: all)"),
	OPT_FLAG('a', "all", struct runs_args, all, "runs of every project in the store"),
	OPT_FLAG(0, "agent", struct runs_args, agent,
		 "calls that agents made through `mcp`, with what came of them"),
	OPT_END,
};
_Static_assert(sizeof(struct runs_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void preset(void *to)
{
	((struct runs_args *)to)->last = UINT64_MAX;
}

static int print_json(const struct invocation *inv, const struct engine_runs *runs, size_t n,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list = json_set_array(j, "runs"), one;

	for (size_t i = 0; i < n; i++) {
		one = json_add_object(list);
		runs_set_json(one, &runs->list[i]);
		runs_set_changed(one, &runs->list[i]);
	}
	return json_print(&doc, inv->out, err);
}

struct widths {
	int outcome, clone, took, when;
};

/* What the columns of a row say; the texts last as long as the row. */
struct run_row {
	const char *outcome, *clone, *took, *when;
	char outcome_text[OUT_COUNT_MAX], when_text[OUT_TIME_MAX], took_text[DURATION_TEXT_MAX];
};

static void fill(struct run_row *row, const struct engine_run *r)
{
	const bool over = r->state == ENGINE_RUN_ENDED || r->state == ENGINE_RUN_CANCELLED;

	row->outcome = runs_outcome(r, row->outcome_text);
	row->clone = runs_clone(r);
	row->took = over ? duration_format(r->duration_ms, row->took_text) : "-";
	row->when = out_when(r->started, row->when_text);
}

static void widen(int *width, const char *text)
{
	const int len = (int)strlen(text);

	*width = len > *width ? len : *width;
}

static struct widths measure(const struct engine_runs *runs, size_t n)
{
	struct widths w = { 0 };
	struct run_row row = {
		.outcome = "ENDED WITH", .clone = "CLONE", .took = "TOOK", .when = "WHEN"
	};

	for (size_t i = 0; i <= n; i++) {
		widen(&w.outcome, row.outcome);
		widen(&w.clone, row.clone);
		widen(&w.took, row.took);
		widen(&w.when, row.when);
		if (i < n)
			fill(&row, &runs->list[i]);
	}
	return w;
}

static void print_human(const struct invocation *inv, const struct engine_runs *runs, size_t n)
{
	const struct widths w = measure(runs, n);
	const int others = ID_WIDTH + w.outcome + w.clone + w.took + w.when + 10;
	const size_t room = runs_command_room(inv, (size_t)others);
	CLEANUP(fold_end) struct fold fold = { 0 };
	struct run_row row;

	if (inv->quiet) {
		for (size_t i = 0; i < n; i++)
			fprintf(inv->out, "%s\n", runs->list[i].id);
		return;
	}
	if (n == 0) {
		unborn_empty(inv, "no runs yet", "help run");
		return;
	}
	fold_begin(&fold, inv, out_columns(fileno(inv->out), 0), (size_t)others);
	inv = &fold.to;
	fprintf(inv->out, "%-*s  %-*s  %-*s  %*s  %-*s  %s\n", ID_WIDTH, "RUN", w.outcome,
		"ENDED WITH", w.clone, "CLONE", w.took, "TOOK", w.when, "WHEN", "COMMAND");
	for (size_t i = 0; i < n; i++) {
		fill(&row, &runs->list[i]);
		fprintf(inv->out, "%s%s%s  %-*s  %-*s  %*s  %-*s  ", out_style(inv, OUT_ID),
			runs->list[i].id, out_style(inv, OUT_PLAIN), w.outcome, row.outcome,
			w.clone, row.clone, w.took, row.took, w.when, row.when);
		runs_print_command(inv->out, &runs->list[i], room);
		fputc('\n', inv->out);
	}
}

static int runs_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const struct runs_args *args = inv->args;
	const struct engine_runs_options options = {
		.clone = inv->n_words > 0 ? inv->words[0] : NULL,
		.all = args->all,
	};
	AUTO_FREE char *unborn = NULL;
	uint64_t most = args->last;
	size_t n;
	int r;

	if (most == UINT64_MAX)
		most = inv->json ? 0 : SHOWN_RUNS;
	if (args->agent)
		return calls_print(inv, most, args->all, err);
	r = engine_runs(inv->engine, &options, &runs, err);
	if (inv->n_words == 0)
		r = unborn_or(inv, r, "no runs yet", &unborn, err);
	if (r != 0)
		return r < 0 ? r : CMD_OK;
	n = most > 0 && most < runs.n ? (size_t)most : runs.n;
	if (inv->json)
		return print_json(inv, &runs, n, err);
	print_human(inv, &runs, n);
	return CMD_OK;
}

const struct command cmd_runs = {
	.name = "runs",
	.group = "Runs",
	.rare = true,
	.summary = "list runs, newest first",
	.words = "[CLONE]",
	.max_words = 1,
	.opts = runs_opts,
	.preset = preset,
	.details =
	    "Of CLONE, even if it is gone, else of this project. Records and output stay for 14\n"
	    "days, at most 100 of them. `lost` means that snap was killed, and the run with it;\n"
	    "`cancelled` that `cancel` ended the run.\n",
	.examples = "runs\nruns idea --json\nruns --agent\n",
	.run = runs_run,
};
