#include <errno.h>

#include "cli/clones.h"

struct rm_args {
	bool force;
};

static const struct opt rm_opts[] = {
	OPT_FLAG('f', "force", struct rm_args, force, "also if somebody uses it"),
	OPT_END,
};
_Static_assert(sizeof(struct rm_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int rm_run(struct invocation *inv, struct err *err)
{
	const struct rm_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json list = json_set_array(out_json_begin(inv, &doc), "removed"), one;
	struct engine_removed removed;
	int r;

	for (int i = 0; i < inv->n_words; i++) {
		r = engine_remove(inv->engine, inv->words[i], args->force, &removed, err);
		clones_hint(inv, r, "rm --force", inv->words[i]);
		if (r < 0 && i > 0)
			return err_wrap(err, r, "the first %d of %d are removed", i, inv->n_words);
		if (r < 0)
			return r;
		one = json_add_object(list);
		json_set_name(one, "clone", inv->words[i]);
		json_set_uint(one, "snapshots", removed.snapshots);
		if (inv->json || inv->quiet)
			continue;
		fputs("removed  ", inv->out);
		out_name(inv->out, inv->words[i]);
		if (removed.snapshots > 0) {
			fputs(", with ", inv->out);
			out_plural(inv->out, removed.snapshots, "snapshot", "snapshots");
		}
		fputc('\n', inv->out);
	}
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

const struct command cmd_rm = {
	.name = "rm",
	.group = "Clones",
	.summary = "remove clones with what was written in them",
	.words = "CLONE...",
	.min_words = 1,
	.max_words = 10000,
	.opts = rm_opts,
	.details =
	    "A clone's snapshots go with it, but for those that have a tag or that another clone\n"
	    "started from. Space is freed by gc.\n",
	.examples = "rm try\nrm --force agent-1 agent-2\n",
	.run = rm_run,
};
