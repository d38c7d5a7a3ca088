#include <errno.h>

#include "cli/show/written.h"

struct edit_args {
	const char *old, *new;
	bool all;
};

static const struct opt edit_opts[] = {
	OPT_STR(0, "old", "TEXT", struct edit_args, old, "the text as it stands in the file"),
	OPT_STR(0, "new", "TEXT", struct edit_args, new, "what replaces it"),
	OPT_FLAG(0, "all", struct edit_args, all, "replace every occurrence"),
	OPT_END,
};
_Static_assert(sizeof(struct edit_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int edit_run(struct invocation *inv, struct err *err)
{
	const struct edit_args *args = inv->args;
	const char *clone, *path;
	struct engine_written w;
	int r = written_split(inv->words[0], &clone, &path, err);

	if (r < 0)
		return r;
	if (!args->old || !args->new)
		return err_set(err, -EINVAL, "'edit' needs '--old' and '--new'");
	r = engine_file_edit(inv->engine, clone, path, args->old, args->new, args->all, &w, err);
	return r < 0 ? r : written_print(inv, clone, path, &w, err);
}

const struct command cmd_edit = {
	.name = "edit",
	.group = "Clones",
	.rare = true,
	.summary = "replace a piece of text in a file of a clone",
	.words = "CLONE:PATH",
	.min_words = 1,
	.max_words = 1,
	.opts = edit_opts,
	.details =
	    "The text must occur exactly once, so that no other place changes by mistake; --all\n"
	    "replaces each occurrence.\n",
	.examples = "edit fix:src/main.c --old 'retries = 1' --new 'retries = 3'\n",
	.run = edit_run,
};
