#include <string.h>

#include "base/size.h"
#include "cli/fold.h"
#include "cli/show/calls.h"
#include "cli/show/runs.h"
#include "cli/unborn.h"

#define SHOWN_RUNS    20 /* unless more are asked for */
#define SHOWN_COMMAND 60 /* bytes */

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

/* "-" of one that did not come to its end. */
static const char *took(const struct engine_run *r, char text[DURATION_TEXT_MAX])
{
	return r->state == ENGINE_RUN_ENDED || r->state == ENGINE_RUN_CANCELLED
		   ? duration_format(r->duration_ms, text)
		   : "-";
}

struct widths {
	int clone, took, when;
};

static struct widths measure(const struct engine_runs *runs, size_t n)
{
	struct widths w = { (int)strlen("CLONE"), (int)strlen("TOOK"), (int)strlen("WHEN") };
	char when[OUT_TIME_MAX], time[DURATION_TEXT_MAX];

	for (size_t i = 0; i < n; i++) {
		w.clone = out_wider(w.clone, runs->list[i].clone);
		w.took = out_wider(w.took, took(&runs->list[i], time));
		w.when = out_wider(w.when, out_when(runs->list[i].started, when));
	}
	return w;
}

static void print_human(const struct invocation *inv, const struct engine_runs *runs, size_t n)
{
	const struct widths w = measure(runs, n);
	char when[OUT_TIME_MAX], outcome[OUT_COUNT_MAX], time[DURATION_TEXT_MAX];
	CLEANUP(fold_end) struct fold fold = { 0 };

	if (inv->quiet) {
		for (size_t i = 0; i < n; i++)
			fprintf(inv->out, "%s\n", runs->list[i].id);
		return;
	}
	if (n == 0) {
		unborn_empty(inv, "no runs yet", "help run");
		return;
	}
	fold_begin(&fold, inv, out_columns(fileno(inv->out), 0),
		   (size_t)(12 + 10 + w.clone + w.took + w.when) + 5 * strlen("  "));
	inv = &fold.to;
	fprintf(inv->out, "%-12s  %-10s  %-*s  %*s  %-*s  %s\n", "RUN", "ENDED WITH", w.clone,
		"CLONE", w.took, "TOOK", w.when, "WHEN", "COMMAND");
	for (size_t i = 0; i < n; i++) {
		const struct engine_run *r = &runs->list[i];

		fprintf(inv->out, "%s%s%s  %-10s  %-*s  %*s  %-*s  ", out_style(inv, OUT_ID), r->id,
			out_style(inv, OUT_PLAIN), runs_outcome(r, outcome), w.clone, r->clone,
			w.took, took(r, time), w.when, out_when(r->started, when));
		runs_print_command(inv->out, r, SHOWN_COMMAND);
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
