#include <errno.h>
#include <string.h>

#include "cli/show/changes.h"

struct approve_args {
	const char *message;
};

static const struct opt approve_opts[] = {
	OPT_STR('m', "message", "WHY", struct approve_args, message, "is kept with the receipt"),
	OPT_END,
};

static const struct opt reject_opts[] = {
	OPT_STR('m', "message", "WHY", struct approve_args, message, "is kept; required"),
	OPT_END,
};
_Static_assert(sizeof(struct approve_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int decide(struct invocation *inv, bool reject, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct approve_args *args = inv->args;
	int r;

	if (reject && (!args->message || *args->message == '\0'))
		return err_set(err, -EINVAL, "say why it is rejected: -m WHY");
	r = engine_approve(inv->engine, inv->words[0], reject, args->message, &c, err);
	if (r == -ENOENT || r == -ECANCELED)
		cmd_hint(inv, "pipeline");
	if (r < 0)
		return r;
	if (inv->json) {
		changes_set(out_json_begin(inv, &doc), &c);
		return json_print(&doc, inv->out, err);
	}
	if (inv->quiet)
		return CMD_OK;
	fprintf(inv->out, "%s %.*s", reject ? "rejected" : "approved", OUT_SHORT_ID, c.id);
	if (!reject)
		fprintf(inv->out, " for stage %s: snap ship --continue %.*s",
			c.stage ? c.stage : "", OUT_SHORT_ID, c.id);
	fputc('\n', inv->out);
	return CMD_OK;
}

static int approve_run(struct invocation *inv, struct err *err)
{
	return decide(inv, false, err);
}

static int reject_run(struct invocation *inv, struct err *err)
{
	return decide(inv, true, err);
}

const struct command cmd_approve = {
	.name = "approve",
	.group = "Changes",
	.rare = true,
	.summary = "let a change that waits enter its next stage",
	.words = "CHANGE",
	.min_words = 1,
	.max_words = 1,
	.opts = approve_opts,
	.details =
	    "Only the users and groups that the stage or the policy names may approve; without\n"
	    "such names, the owner of the store. The approval is for this change at this stage.\n"
	    "Paths that the guard holds pass with it.\n",
	.examples = "approve 3f2a\napprove 3f2a -m 'looked at the diff'\n",
	.run = approve_run,
};

const struct command cmd_reject = {
	.name = "reject",
	.group = "Changes",
	.rare = true,
	.summary = "end a change that is on its way, and bar the same content",
	.words = "CHANGE",
	.min_words = 1,
	.max_words = 1,
	.opts = reject_opts,
	.details = "What landed on stages before stays; `undo` takes it back.\n",
	.examples = "reject 3f2a -m 'not before the release'\n",
	.run = reject_run,
};
