#include "cli/show/taken.h"

struct init_args {
	bool skip_unreadable;
};

static const struct opt init_opts[] = {
	OPT_FLAG(0, "skip-unreadable", struct init_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_END,
};
_Static_assert(sizeof(struct init_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int init_run(struct invocation *inv, struct err *err)
{
	const struct init_args *args = inv->args;
	struct engine_take_options options = {
		.dir = inv->n_words > 0 ? inv->words[0] : NULL,
		.skip_unreadable = args->skip_unreadable,
	};

	return taken_run(inv, options, false, err);
}

const struct command cmd_init = {
	.name = "init",
	.group = "Snapshots",
	.rare = true,
	.summary = "register a project and take its first snapshot",
	.words = "[DIR]",
	.max_words = 1,
	.opts = init_opts,
	.details =
	    "You never need this: the first snapshot does the same. DIR becomes a project even inside\n"
	    "another one. Without DIR, the project is the git work tree that holds the current\n"
	    "directory, else that directory. `/`, the home directory, a system folder such as /etc\n"
	    "and a shared folder such as /tmp become a project only if you name them.\n",
	.examples = "init\ninit ~/src/website\n",
	.run = init_run,
};
