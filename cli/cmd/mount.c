#include "cli/show/clones.h"

static int mount_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *path = NULL;
	struct json j;
	int r = engine_mount(inv->engine, inv->words[0], &path, err);

	clones_hint(inv, r, NULL, NULL);
	if (r < 0)
		return r;
	if (!inv->json) {
		fprintf(inv->out, "%s\n", path);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_name(j, "clone", inv->words[0]);
	json_set_name(j, "path", path);
	return json_print(&doc, inv->out, err);
}

const struct command cmd_mount = {
	.name = "mount",
	.group = "Daemon and mounts",
	.rare = true,
	.summary = "mount a clone and print its path",
	.words = "CLONE",
	.min_words = 1,
	.max_words = 1,
	.details =
	    "A new clone is already mounted, and the daemon mounts it again when it restarts.\n",
	.examples = "mount idea\n",
	.run = mount_run,
};
