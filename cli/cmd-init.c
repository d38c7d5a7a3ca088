#include "cli/taken.h"

static int init_run(struct invocation *inv, struct err *err)
{
	struct engine_take_options options = { .dir = inv->n_words > 0 ? inv->words[0] : NULL };

	return taken_run(inv, options, err);
}

const struct command cmd_init = {
	.name = "init",
	.group = "Snapshots",
	.summary = "register a project and take its first snapshot",
	.words = "[DIR]",
	.max_words = 1,
	.details =
	    "Never needed: the first snapshot does the same. DIR is taken as it is, also inside\n"
	    "of another project; without it, the project is the git work tree that holds the\n"
	    "current directory, else that directory. `/` and the home directory must be named.\n",
	.examples = "init\ninit ~/src/website\n",
	.run = init_run,
};
