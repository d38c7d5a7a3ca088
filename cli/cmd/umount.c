#include "cli/show/clones.h"

struct umount_args {
	bool force;
};

static const struct opt umount_opts[] = {
	OPT_FLAG('f', "force", struct umount_args, force,
		 "even if a program uses it; that program then gets errors"),
	OPT_END,
};
_Static_assert(sizeof(struct umount_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int umount_run(struct invocation *inv, struct err *err)
{
	const struct umount_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;
	int r = engine_umount(inv->engine, inv->words[0], args->force, err);

	clones_hint(inv, r, "umount --force", inv->words[0]);
	if (r < 0 || !inv->json)
		return r < 0 ? r : CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_name(j, "clone", inv->words[0]);
	return json_print(&doc, inv->out, err);
}

const struct command cmd_umount = {
	.name = "umount",
	.group = "Daemon and mounts",
	.rare = true,
	.summary = "unmount a clone; what was written in it is kept",
	.words = "CLONE",
	.min_words = 1,
	.max_words = 1,
	.opts = umount_opts,
	.examples = "umount idea\n",
	.run = umount_run,
};
