#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/comparisons.h"
#include "cli/show/page.h"

struct compare_args {
	const char *base, *html;
	struct opt_list scores;
	bool stat, hunks, exit_code;
};

static const struct opt compare_opts[] = {
	OPT_STR(0, "base", "STATE", struct compare_args, base,
		"compare with this instead of the state they share"),
	OPT_FLAG(0, "stat", struct compare_args, stat, "leave out the places that conflict"),
	OPT_FLAG(0, "hunks", struct compare_args, hunks,
		 "add the hunks of files that several changed"),
	OPT_STR(0, "html", "FILE", struct compare_args, html,
		"write a page with all of it to FILE (- is stdout)"),
	OPT_LIST(0, "score", "NAME=VALUE[:SPREAD]", struct compare_args, scores,
		 "a measured value for the chart of that page"),
	OPT_FLAG(0, "exit-code", struct compare_args, exit_code,
		 "exit with 5 if two of them would conflict"),
	OPT_END,
};
_Static_assert(sizeof(struct compare_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- scores ----------------------------------------------------------------------------- */

struct scores {
	struct page_score *list; /* owned, with its names */
	size_t n;
};

static void scores_done(struct scores *s)
{
	VEC_FREE(one, s->list, s->n, free(one->name));
}

static int read_score(const char *text, struct page_score *ret, struct err *err)
{
	const char *equals = strrchr(text, '=');
	char *end = NULL;

	if (equals && equals > text)
		ret->median = strtod(equals + 1, &end);
	if (end && end > equals + 1 && *end == ':' && end[1] != '\0')
		ret->spread = strtod(end + 1, &end);
	if (!end || end == equals + 1 || *end != '\0' || !isfinite(ret->median) ||
	    !isfinite(ret->spread) || ret->spread < 0)
		return err_set(
		    err, -EINVAL,
		    "option '--score': '%s' is not a name and a value, such as fast=1.25:0.1",
		    text);
	ret->name = strndup(text, (size_t)(equals - text));
	return ret->name ? 0 : err_nomem(err);
}

static int read_scores(const struct compare_args *args, struct scores *ret, struct err *err)
{
	int r = 0;

	if (args->scores.n > 0 && !args->html)
		return err_set(err, -EINVAL, "option '--score' needs '--html'");
	ret->list = calloc(args->scores.n + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	for (size_t i = 0; i < args->scores.n && r >= 0; i++) {
		r = read_score(args->scores.items[i], &ret->list[i], err);
		ret->n += r >= 0;
	}
	return r;
}

/* --- the command ------------------------------------------------------------------------ */

static int show(const struct invocation *inv, const struct engine_compare *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct compare_args *args = inv->args;

	if (!inv->json)
		return comparisons_print(inv, c,
					 args->stat    ? COMPARISONS_NO_HUNKS
					 : args->hunks ? COMPARISONS_ALL_HUNKS
						       : COMPARISONS_CONFLICTS,
					 err);
	comparisons_set_json(out_json_begin(inv, &doc), c, args->hunks);
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
		.patches = args->html || args->hunks,
		.watch = progress_watch(inv->progress),
	};
	CLEANUP(scores_done) struct scores scores = { 0 };
	int r = args->stat && args->hunks
		    ? err_set(err, -EINVAL, "options '--stat' and '--hunks' exclude each other")
		    : read_scores(args, &scores, err);

	if (r >= 0)
		r = page_take_stdout(inv, args->html, err);
	if (r < 0)
		return r;
	r = engine_compare(inv->engine, &options, &c, err);
	progress_done(inv->progress);
	if (r == -ENOENT) {
		cmd_hint(inv, "list");
		cmd_hint(inv, "log");
	}
	if (r < 0)
		return r;
	if (args->html)
		r = page_write(
		    args->html, &c,
		    &(struct page_options){ .scores = scores.list, .n_scores = scores.n }, err);
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
	.rare = true,
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
	.examples = "compare fix-a fix-b --hunks\ncompare a b . --json\n",
	.run = compare_run,
};
