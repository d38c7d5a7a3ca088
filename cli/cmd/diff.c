#include <errno.h>

#include "cli/out.h"
#include "cli/show/diffs.h"
#include "cli/show/risks.h"

struct diff_args {
	bool stat, name_status, exit_code, no_renames, patch, risk, script;
	uint64_t context;
};

static const struct opt diff_opts[] = {
	OPT_FLAG(0, "stat", struct diff_args, stat, "count changed lines instead"),
	OPT_FLAG(0, "name-status", struct diff_args, name_status,
		 "list names and A, D, M, R, T, or m for metadata alone"),
	OPT_FLAG(0, "exit-code", struct diff_args, exit_code,
		 "exit with 3 if there are differences"),
	OPT_FLAG(0, "no-renames", struct diff_args, no_renames, "do not look for what moved"),
	OPT_U64('U', "unified", "N", struct diff_args, context,
		"lines around a change (default: 3)"),
	OPT_FLAG('p', "patch", struct diff_args, patch, "with --json: the text of the patch too"),
	OPT_FLAG(0, "script", struct diff_args, script,
		 "of a root clone: a shell script that does the same on a machine"),
	OPT_FLAG(0, "risk", struct diff_args, risk,
		 "of a clone's changes: how risky they are, and why"),
	OPT_END,
};
_Static_assert(sizeof(struct diff_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

#define CONTEXT_MAX 1000000

/* --- the command ------------------------------------------------------------------------ */

static int check_args(const struct diff_args *args, struct err *err)
{
	if (args->stat && args->name_status)
		return err_set(err, -EINVAL, "'--stat' and '--name-status' do not go together");
	if (args->script && (args->stat || args->name_status || args->risk))
		return err_set(err, -EINVAL,
			       "'--script' goes with none of '--stat', '--name-status', '--risk'");
	if (args->context > CONTEXT_MAX)
		return err_set(err, -EINVAL, "option '--unified': at most %d lines", CONTEXT_MAX);
	return 0;
}

/* Of what a clone changed since it was made; of other differences there is none. */
static int show_risk(struct invocation *inv, struct json j, struct err *err)
{
	CLEANUP(engine_facts_done) struct engine_facts facts = { 0 };
	const struct engine_facts_options options = { .clone = inv->n_before > 0 ? inv->words[0]
										 : NULL };
	int r;

	if (inv->n_before > 1 || inv->n_words > inv->n_before)
		return err_set(err, -EINVAL, "'--risk' is about all that one clone changed");
	r = engine_facts(inv->engine, &options, &facts, err);
	if (r < 0)
		return r;
	if (inv->json)
		risks_set(j, &facts);
	else
		risks_print_notes(inv, &facts);
	return 0;
}

static int diff_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct diff_args *args = inv->args;
	const struct diffs_options options = {
		.a = inv->n_before > 0 ? inv->words[0] : NULL,
		.b = inv->n_before > 1 ? inv->words[1] : NULL,
		.paths = (const char *const *)inv->words + inv->n_before,
		.n_paths = (size_t)(inv->n_words - inv->n_before),
		.stat = args->stat,
		.name_status = args->name_status,
		.no_renames = args->no_renames,
		.patch = args->patch,
		.script = args->script,
		.context = (unsigned)args->context,
	};
	bool different = false;
	struct json j;
	int r = check_args(args, err);

	if (r < 0)
		return r;
	j = out_json_begin(inv, &doc);
	if (args->risk)
		r = show_risk(inv, j, err);
	if (r < 0)
		return r;
	if (inv->json)
		r = diffs_set_json(inv, &options, j, &different, err);
	else
		r = diffs_print(inv, &options, &different, err);
	if (r == -ENOENT)
		cmd_hint(inv, "log");
	if (r < 0)
		return r;
	if (inv->json)
		r = json_print(&doc, inv->out, err);
	if (r < 0)
		return r;
	return args->exit_code && different ? CMD_DIFFERENT : CMD_OK;
}

static void diff_preset(void *args)
{
	((struct diff_args *)args)->context = DIFFS_CONTEXT;
}

const struct command cmd_diff = {
	.name = "diff",
	.group = "Snapshots",
	.summary = "show what differs between two states",
	.words = "[A [B]] [-- PATH...]",
	.max_words = 2,
	.takes_rest = true,
	.opts = diff_opts,
	.preset = diff_preset,
	.details =
	    "A state is a snapshot (`@`, an id, a tag), a clone (its name) or the project (`.`) now. "
	    "With A alone: since that snapshot, or since that clone's base. With neither: the clone "
	    "here, else the project since its last snapshot. Prints a patch that `git apply` takes; "
	    "lines before it that begin with `#` have the rest.",
	.examples = "diff idea --stat\ndiff @-1 @ -- src\ndiff idea > fix.patch\n"
		    "diff box --script > again.sh\n",
	.run = diff_run,
};
