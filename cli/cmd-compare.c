#include <errno.h>

#include "cli/comparisons.h"
#include "cli/out.h"
#include "cli/progress.h"

struct compare_args {
	const char *base;
	bool stat, exit_code;
};

static const struct opt compare_opts[] = {
	OPT_STR(0, "base", "STATE", struct compare_args, base,
		"compare with this instead of the state they share"),
	OPT_FLAG(0, "stat", struct compare_args, stat, "leave out the places that conflict"),
	OPT_FLAG(0, "exit-code", struct compare_args, exit_code,
		 "exit with 5 if two of them would conflict"),
	OPT_END,
};
_Static_assert(sizeof(struct compare_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int show(const struct invocation *inv, const struct engine_compare *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct compare_args *args = inv->args;

	if (!inv->json)
		return comparisons_print(inv, c, !args->stat, err);
	comparisons_set_json(out_json_begin(inv, &doc), c);
	return json_print(&doc, inv->out, err);
}

static int compare_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_compare_done) struct engine_compare c = { 0 };
	const struct compare_args *args = inv->args;
	const struct engine_compare_options options = {
		.sides = (const char *const *)inv->words,
		.n = (size_t)inv->n_words,
		.base = args->base,
		.watch = progress_watch(inv->progress),
	};
	int r = engine_compare(inv->engine, &options, &c, err);

	progress_done(inv->progress);
	if (r == -ENOENT) {
		cmd_hint(inv, "list");
		cmd_hint(inv, "log");
	}
	if (r < 0)
		return r;
	r = show(inv, &c, err);
	if (r < 0)
		return r;
	return args->exit_code && !c.clean ? CMD_CONFLICT : CMD_OK;
}

const struct command cmd_compare = {
	.name = "compare",
	.group = "Snapshots",
	.summary = "show states side by side, and whether they would merge",
	.words = "A B [C...]",
	.min_words = 2,
	.max_words = ENGINE_COMPARE_MAX,
	.opts = compare_opts,
	.details =
	    "One line for each file that a side changed since the nearest state of the project that "
	    "all descend from: A, D, M, T, or m for metadata alone, with lines added and removed. "
	    "`same`: all made the same of it. `merges`: the changes can be put together. `conflict`: "
	    "they cannot, and the places follow.",
	.examples = "compare fix-a fix-b\ncompare try . --stat\ncompare a b c --json\n",
	.run = compare_run,
};
