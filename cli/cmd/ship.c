#include <errno.h>

#include "cli/progress.h"
#include "cli/show/changes.h"
#include "cli/show/promotions.h"

struct ship_args {
	const char *to, *who;
	struct opt_list subject;
	bool again, wait;
};

static const struct opt ship_opts[] = {
	OPT_STR(0, "to", "STAGE", struct ship_args, to, "stop once it has passed this stage"),
	OPT_STR(0, "as", "WHO", struct ship_args, who,
		"on whose behalf: person (default), agent, agent:NAME, watch"),
	OPT_LIST(0, "subject", "GLOB", struct ship_args, subject,
		 "paths that the change is meant to touch"),
	OPT_FLAG(0, "continue", struct ship_args, again,
		 "the word names a change; take that further"),
	OPT_FLAG(0, "wait", struct ship_args, wait, "wait until it has soaked"),
	OPT_END,
};
_Static_assert(sizeof(struct ship_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_change(struct invocation *inv, const struct engine_change *c, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };

	if (inv->quiet && !inv->json)
		fprintf(inv->out, "%s\n", c->id);
	else if (!inv->json)
		changes_print(inv, c);
	if (!inv->json)
		return 0;
	changes_set(out_json_begin(inv, &doc), c);
	return json_print(&doc, inv->out, err);
}

static int ship_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_change_done) struct engine_change c = { 0 };
	CLEANUP(engine_promotion_done) struct engine_promotion promotion = { 0 };
	const struct ship_args *args = inv->args;
	const char *word = inv->n_words > 0 ? inv->words[0] : NULL;
	const struct engine_ship_options options = {
		.clone = word,
		.to = args->to,
		.who = args->who,
		.subject = { args->subject.items, args->subject.n },
		.wait = args->wait,
		.checking = promotions_on_check,
		.ctx = inv,
		.watch = progress_watch(inv->progress),
	};
	int r;

	if (args->again && !word)
		return err_set(err, -EINVAL, "option '--continue' needs the id of a change");
	r = args->again ? engine_ship_on(inv->engine, word, &options, &c, &promotion, err)
			: engine_ship(inv->engine, &options, &c, &promotion, err);
	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, args->again ? "pipeline" : "help pipeline");
	if (r < 0)
		return r;
	r = print_change(inv, &c, err);
	return r < 0 ? r : changes_exit(&c);
}

const struct command cmd_ship = {
	.name = "ship",
	.group = "Changes",
	.rare = true,
	.summary = "take a clone's changes through the stages, as far as they may go",
	.words = "[CLONE | --continue CHANGE]",
	.max_words = 1,
	.opts = ship_opts,
	.details =
	    "What ships is the clone as it is now; you can go on working in it. Each stage of your\n"
	    "pipeline.yaml checks the change, may ask a person, lands it in its target, and watches it\n"
	    "there. A change that waits, soaks or was held goes on with --continue.\n"
	    "\n"
	    "The exit code is 14 if it waits for a person, 5, 7 or 8 if a conflict, a rule or a check\n"
	    "holds it, and 8 if its health failed and it was undone.\n",
	.examples = "ship idea\nship idea --to staging\nship --continue 3f2a --wait\n",
	.run = ship_run,
};
