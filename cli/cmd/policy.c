#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/risks.h"
#include "cli/show/verdicts.h"
#include "engine/api/policy.h"

struct policy_args {
	const char *who, *tests;
	struct opt_list subject;
};

static const struct opt policy_opts[] = {
	OPT_STR(0, "as", "WHO", struct policy_args, who,
		"on whose behalf: watch (default), agent, agent:NAME, person"),
	OPT_STR(0, "tests", "pass|fail", struct policy_args, tests, "how the checks ended"),
	OPT_LIST(0, "subject", "GLOB", struct policy_args, subject,
		 "paths that the change is meant to touch"),
	OPT_END,
};
_Static_assert(sizeof(struct policy_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- for people ------------------------------------------------------------------------- */

static void print_facts(const struct invocation *inv, const struct engine_facts *f)
{
	FILE *out = inv->out;

	out_plural(out, f->files, "file", "files");
	fprintf(out, ", +%" PRIu64 " -%" PRIu64 " lines, %s\n", f->lines_added, f->lines_removed,
		f->kind);
	risks_print(inv, f);
}

static void print_verdict(const struct invocation *inv, const struct engine_verdict *v)
{
	static const char *const sentences[] = {
		[ENGINE_MAY_LAND] = "it may land without a person",
		[ENGINE_MUST_ASK] = "a person must approve it",
		[ENGINE_MAY_NOT] = "it may not land",
	};
	FILE *out = inv->out;

	print_facts(inv, &v->facts);
	fputs("rules:\n", out);
	verdicts_print_steps(inv, v);
	fprintf(out, "%s%s%s", out_style(inv, OUT_BOLD), sentences[v->then],
		out_style(inv, OUT_PLAIN));
	for (size_t i = 0; v->approvers && v->approvers[i]; i++) {
		fputs(i > 0 ? ", " : ": ", out);
		out_line(out, v->approvers[i]);
	}
	fputc('\n', out);
}

/* --- as JSON ---------------------------------------------------------------------------- */

static void set_facts(struct json j, const struct engine_facts *f)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "files", f->files },
		{ "added", f->added },
		{ "deleted", f->deleted },
		{ "lines_added", f->lines_added },
		{ "lines_removed", f->lines_removed },
		{ "bytes", f->bytes },
		{ "binaries", f->binaries },
		{ "executables", f->executables },
		{ "tests_deleted", f->tests_deleted },
		{ "held", f->held },
		{ "warned", f->warned },
		{ "conflicts", f->conflicts },
		{ "refusals", f->refusals },
	};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_set_uint(j, numbers[i].key, numbers[i].value);
	json_set_text(j, "kind", f->kind);
	json_set_text(j, "experiment", f->experiment);
	if (f->scored)
		json_set_exact(j, "score", f->score);
	else
		json_set_null(j, "score");
}

static int print_json(const struct invocation *inv, const struct engine_verdict *v, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), approvers;

	json_set_name(j, "project", v->facts.project);
	json_set_text(j, "then", engine_authority_name(v->then));
	json_set_text(j, "risk", engine_risk_name(v->facts.risk));
	risks_set_reasons(json_set_array(j, "reasons"), &v->facts);
	set_facts(json_set_object(j, "facts"), &v->facts);
	verdicts_set_steps(json_set_array(j, "steps"), v);
	approvers = json_set_array(j, "approvers");
	for (size_t i = 0; v->approvers && v->approvers[i]; i++)
		json_add_name(approvers, v->approvers[i]);
	return json_print(&doc, inv->out, err);
}

/* --- the command ------------------------------------------------------------------------ */

static int policy_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_verdict_done) struct engine_verdict v = { 0 };
	const struct policy_args *args = inv->args;
	struct engine_policy_options options = {
		.facts.clone = inv->n_words > 1 ? inv->words[1] : NULL,
		.facts.subject = { args->subject.items, args->subject.n },
		.facts.watch = progress_watch(inv->progress),
		.who = args->who,
		.tests = args->tests,
	};
	int r;

	if (strcmp(inv->words[0], "explain") != 0)
		return err_set(err, -EINVAL, "'policy' does not know '%s': it takes explain",
			       inv->words[0]);
	r = engine_policy_explain(inv->engine, &options, &v, err);
	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, "list");
	if (r < 0)
		return r;
	if (inv->json)
		r = print_json(inv, &v, err);
	else if (inv->quiet)
		fprintf(inv->out, "%s\n", engine_authority_name(v.then));
	else
		print_verdict(inv, &v);
	return r < 0 ? r : CMD_OK;
}

const struct command cmd_policy = {
	.name = "policy",
	.group = "Changes",
	.rare = true,
	.summary = "say how risky a clone's changes are, and what may land by itself",
	.words = "explain [CLONE]",
	.min_words = 1,
	.max_words = 2,
	.opts = policy_opts,
	.details =
	    "The risk is low, medium or high, with reasons: guarded paths, secrets, deleted tests,\n"
	    "binaries, new programs, dependencies, size. Rules in policy.yaml, in your\n"
	    "configuration, say what may land without a person; .snap/policy.yaml of the project\n"
	    "can only narrow them. Without a rule that fits, a person must approve.\n",
	.examples = "policy explain idea\npolicy explain idea --as agent --tests pass\n",
	.run = policy_run,
};
