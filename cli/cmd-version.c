#include "cli/out.h"

static int version_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j;

	if (!inv->json) {
		fprintf(inv->out, "snapcow %s\n", SNAP_VERSION);
		return CMD_OK;
	}
	j = out_json_begin(inv, &doc);
	json_set_text(j, "version", SNAP_VERSION);
	return json_print(&doc, inv->out, err);
}

const struct command cmd_version = {
	.name = "version",
	.group = "Other",
	.summary = "say which version this is",
	.no_engine = true,
	.run = version_run,
};
