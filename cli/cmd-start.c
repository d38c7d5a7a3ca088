#include <inttypes.h>

#include "cli/service.h"

static int start_run(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct engine_service s;
	bool started;
	struct json j;
	int r;

	r = engine_start(inv->engine, &s, &started, err);
	if (r < 0)
		return r;
	if (inv->json) {
		j = out_json_begin(inv, &doc);
		json_set_bool(j, "started", started);
		service_set_json(j, &s);
		return json_print(&doc, inv->out, err);
	}
	if (!inv->quiet)
		fprintf(inv->out, "cowfsd %s %s, process %" PRId64 ", %" PRIu64 " mounted\n",
			s.version, started ? "started" : "runs already", s.pid, s.mounted);
	return CMD_OK;
}

const struct command cmd_start = {
	.name = "start",
	.group = "Daemon and mounts",
	.summary = "start the daemon, which commands do by themselves",
	.details =
	    "Mounts again what was mounted when it ended. It leaves by itself when nothing is\n"
	    "mounted and nobody asks for anything for five minutes.\n",
	.run = start_run,
};
