#include <errno.h>

#include "cli/show/taken.h"

#include "cli/out.h"
#include "engine/api/clone.h"
#include "engine/api/run.h"

struct snapshot_args {
	const char *message;
	const char *tag;
	const char *path;
	struct opt_list meta;
	bool skip_unreadable, lazy, wait;
};

static const struct opt snapshot_opts[] = {
	OPT_STR('m', "message", "TEXT", struct snapshot_args, message, "say what it is for"),
	OPT_STR('t', "tag", "NAME", struct snapshot_args, tag, "give it a name in this project"),
	OPT_LIST(0, "meta", "KEY=VALUE", struct snapshot_args, meta, "label it; up to 16 times"),
	OPT_STR(0, "path", "DIR", struct snapshot_args, path, "only this directory of the project"),
	OPT_FLAG(0, "lazy", struct snapshot_args, lazy, "do not wait until the files are read"),
	OPT_FLAG(0, "wait", struct snapshot_args, wait, "return when all files are read"),
	OPT_FLAG(0, "skip-unreadable", struct snapshot_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_END,
};
_Static_assert(sizeof(struct snapshot_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* In a run: of its own clone, with the run's label. */
static int print_inside(const struct invocation *inv, const char *id, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (inv->json) {
		j = out_json_begin(inv, &doc);
		json_set_text(j, "snapshot", id);
		json_set_bool(j, "inside", true);
		return json_print(&doc, inv->out, err);
	}
	fprintf(inv->out, inv->quiet ? "%s\n" : "snapshot %s of this run's clone\n", id);
	return CMD_OK;
}

/* Nothing but the wish gets out of a run. */
static int refuse_words(const struct invocation *inv, struct err *err)
{
	const struct snapshot_args *args = inv->args;

	const bool plain = inv->n_words == 0 && !args->message && !args->tag && !args->path &&
			   args->meta.n == 0 && !args->skip_unreadable && !args->lazy &&
			   !args->wait;

	if (plain || !engine_is_inside())
		return 0;
	return err_set(
	    err, -EINVAL,
	    "in a run 'snapshot' takes no words and no options: it is of the run's clone, "
	    "with the label run=ID");
}

static int snapshot_run(struct invocation *inv, struct err *err)
{
	const struct snapshot_args *args = inv->args;
	AUTO_FREE char *here = inv->n_words > 0 ? NULL : engine_clone_here(inv->engine);
	AUTO_FREE char *meta = NULL;
	struct engine_take_options options = {
		.clone = inv->n_words > 0 ? inv->words[0] : here,
		.message = args->message,
		.tag = args->tag,
		.part = args->path,
		.skip_unreadable = args->skip_unreadable,
		.lazy = args->lazy,
	};

	char id[ENGINE_ID_SIZE];
	int r = refuse_words(inv, err);

	if (r < 0)
		return r;
	r = engine_inside_snapshot(id, err);
	if (r != 0)
		return r < 0 ? r : print_inside(inv, id, err);
	r = meta_encode(args->meta.items, args->meta.n, &meta, err);
	if (r < 0)
		return r;
	options.meta = meta;
	return taken_run(inv, options, args->wait, err);
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
	    "everything in it, ignored and untracked files too; of a clone, everything written so\n"
	    "far, also by programs that still run. Content that the store has takes no extra space.\n"
	    "When this returns, the snapshot survives power loss; with --lazy only when its files are read,\n"
	    "which `status` tells and --wait waits for. Inside a run it saves the run's clone, if the\n"
	    "profile allows it. -q prints its id. A file .snapignore, in the syntax of .gitignore,\n"
	    "names what to leave out. `log --meta` finds labels. `@` and a bare `rollback` pass over\n"
	    "a snapshot of --path.\n",
	.examples = "snapshot -m 'before the upgrade' -t known-good\nsnapshot idea --meta step=3\n",
	.run = snapshot_run,
};
