#include <errno.h>

#include "cli/progress.h"
#include "cli/show/conflicts.h"
#include "cli/show/promotions.h"

struct undo_args {
	const char *conflict, *markers;
	uint64_t newer;
	bool dry_run, yes, root, skip_unreadable;
};

static const struct opt undo_opts[] = {
	OPT_STR(0, "conflict", "HOW", struct undo_args, conflict,
		"stop (default), ours, theirs or markers"),
	OPT_STR(0, "markers", "STYLE", struct undo_args, markers,
		"merge (default), diff3 or zdiff3"),
	OPT_DURATION(0, "if-newer-than", "TIME", struct undo_args, newer,
		     "refuse if it is older than that"),
	OPT_FLAG(0, "skip-unreadable", struct undo_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_FLAG('n', "dry-run", struct undo_args, dry_run, "only say what would change"),
	OPT_FLAG(0, "root", struct undo_args, root, "undo a `promote --root`, as root"),
	OPT_FLAG('y', "yes", struct undo_args, yes, "no effect, for scripts: nothing is asked"),
	OPT_END,
};
_Static_assert(sizeof(struct undo_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int undo_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	const struct undo_args *args = inv->args;
	struct engine_undo_options options = {
		.what = inv->n_words > 0 ? inv->words[0] : NULL,
		.newer_than_ms = args->newer,
		.root = args->root,
		.skip_unreadable = args->skip_unreadable,
		.dry_run = args->dry_run,
		.watch = progress_watch(inv->progress),
	};
	int r = conflicts_read_ways(args->conflict, args->markers, &options.on_conflict,
				    &options.style, err);

	if (r < 0)
		return r;
	r = engine_undo(inv->engine, &options, &p, err);
	progress_done(inv->progress);
	/* What was promoted to a directory with a root is the project there. */
	if (args->root && (r == -ENOENT || r == -ENXIO))
		cmd_hint(inv, "undo");
	else if (r == -ENOENT)
		cmd_hint(inv, "log");
	promotions_hint_lost(inv, r);
	if (!args->skip_unreadable)
		cmd_hint_if_unreadable(inv, r, err);
	return r < 0 ? r : promotions_tell(inv, &p, err);
}

const struct command cmd_undo = {
	.name = "undo",
	.group = "Changes",
	.summary = "take back a promotion or a rollback of the project",
	.words = "[PROMOTION]",
	.max_words = 1,
	.opts = undo_opts,
	.details =
	    "Without PROMOTION: the last one that was not taken back. Later edits stay; one in\n"
	    "the same place is a conflict (5), and nothing changes. An undo can be undone by its\n"
	    "own id. Branches snap/CLONE/... that `promote --git` brought stay; `git branch -D`\n"
	    "removes them.\n",
	.examples = "undo\nundo --dry-run\nundo --if-newer-than 10m\n",
	.run = undo_run,
};
