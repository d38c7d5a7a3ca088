#include <errno.h>
#include <inttypes.h>

#include "cli/cmd/service.h"

struct start_args {
	bool foreground;
};

static const struct opt start_opts[] = {
	OPT_FLAG(0, "foreground", struct start_args, foreground,
		 "be the daemon in this process, and log to stderr"),
	OPT_END,
};
_Static_assert(sizeof(struct start_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int start_run(struct invocation *inv, struct err *err)
{
	const struct start_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct engine_service s;
	bool started;
	struct json j;
	int r;

	if (args->foreground) {
		r = engine_serve(inv->engine, err);
		if (r == -EBUSY)
			cmd_hint(inv, "stop");
		return r;
	}
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
	.rare = true,
	.summary = "start the daemon; commands also do so by themselves",
	.opts = start_opts,
	.details =
	    "Mounts again what was mounted when the daemon ended. The daemon ends by itself when\n"
	    "nothing is mounted and no command came for five minutes.\n",
	.examples = "start\nstart --foreground\n",
	.run = start_run,
};
