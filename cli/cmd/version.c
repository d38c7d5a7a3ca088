#include "cli/cmd/service.h"

/* The version can be printed, whatever is wrong with the store. */
static void set_daemon(const struct invocation *inv, struct json j)
{
	const struct engine_options options = { .dir = inv->dir, .store = inv->store };
	CLEANUP(engine_close_p) struct engine *engine = NULL;
	struct engine_service s;

	if (engine_open(&options, &engine, NULL) < 0 || engine_service(engine, &s, NULL) < 0) {
		json_set_null(j, "daemon");
		return;
	}
	service_set_json(json_set_object(j, "daemon"), &s);
}

static int version_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (!inv->json) {
		fprintf(inv->out, "snapcow %s\n", engine_version());
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "version", engine_version());
	set_daemon(inv, j);
	return json_print(&doc, inv->out, err);
}

const struct command cmd_version = {
	.name = "version",
	.group = "Other",
	.rare = true,
	.summary = "say which version this is",
	.details = "With --json also which daemon serves the store, if one runs.\n",
	.no_engine = true,
	.examples = "version\nversion --json\n",
	.run = version_run,
};
