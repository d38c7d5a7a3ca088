#include "cli/show/taken.h"

#include "engine/api/clone.h"

struct snapshot_args {
	const char *message;
	const char *tag;
	struct opt_list meta;
	bool skip_unreadable;
};

static const struct opt snapshot_opts[] = {
	OPT_STR('m', "message", "TEXT", struct snapshot_args, message, "say what it is for"),
	OPT_STR('t', "tag", "NAME", struct snapshot_args, tag, "give it a name of this project's"),
	OPT_LIST(0, "meta", "KEY=VALUE", struct snapshot_args, meta, "label it; up to 16 times"),
	OPT_FLAG(0, "skip-unreadable", struct snapshot_args, skip_unreadable,
		 "leave out what cannot be read, and say so"),
	OPT_END,
};
_Static_assert(sizeof(struct snapshot_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int snapshot_run(struct invocation *inv, struct err *err)
{
	const struct snapshot_args *args = inv->args;
	AUTO_FREE char *here = inv->n_words > 0 ? NULL : engine_clone_here(inv->engine);
	AUTO_FREE char *meta = NULL;
	struct engine_take_options options = {
		.clone = inv->n_words > 0 ? inv->words[0] : here,
		.message = args->message,
		.tag = args->tag,
		.skip_unreadable = args->skip_unreadable,
	};

	int r = meta_encode(args->meta.items, args->meta.n, &meta, err);

	if (r < 0)
		return r;
	options.meta = meta;
	return taken_run(inv, options, err);
}

const struct command cmd_snapshot = {
	.name = "snapshot",
	.group = "Snapshots",
	.summary = "keep the project or a clone as it is now",
	.words = "[CLONE]",
	.max_words = 1,
	.opts = snapshot_opts,
	.details =
	    "Without CLONE: the clone that holds the current directory, else the project. Keeps\n"
	    "everything in the project's directory, ignored and untracked files too. Of a clone\n"
	    "it keeps everything written so far, also by programs that still run there. What the\n"
	    "store has already takes no more space. When this returns, the snapshot survives\n"
	    "power loss. -q prints its id alone. A file .snapignore in the project, in the syntax\n"
	    "of .gitignore, names what to leave out. `log --meta` finds snapshots by their\n"
	    "labels.\n",
	.examples = "snapshot -m 'before the upgrade' -t known-good\nsnapshot try --meta step=3\n",
	.run = snapshot_run,
};
