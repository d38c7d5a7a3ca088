#include <errno.h>
#include <inttypes.h>

#include "cli/cmd/service.h"

struct stop_args {
	bool force;
};

static const struct opt stop_opts[] = {
	OPT_FLAG('f', "force", struct stop_args, force,
		 "even if clones are in use, commands are under way or files are still to be read"),
	OPT_END,
};
_Static_assert(sizeof(struct stop_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int stop_run(struct invocation *inv, struct err *err)
{
	const struct stop_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct engine_service s = { 0 };
	struct json j;
	int r = engine_stop(inv->engine, args->force, &s, err);

	if (r == -EBUSY)
		cmd_hint(inv, "stop --force");
	if (r < 0 && r != -ESRCH)
		return r;
	if (inv->json) {
		j = out_json_begin(inv, &doc);
		json_set_bool(j, "stopped", r >= 0);
		if (r >= 0)
			service_set_json(j, &s);
		return json_print(&doc, inv->out, err);
	}
	if (!inv->quiet && r < 0)
		fputs("cowfsd was not running\n", inv->out);
	else if (!inv->quiet)
		fprintf(inv->out, "cowfsd stopped, process %" PRId64 "\n", s.pid);
	return CMD_OK;
}

const struct command cmd_stop = {
	.name = "stop",
	.group = "Daemon and mounts",
	.rare = true,
	.summary = "unmount all clones, keep what was written, end the daemon",
	.opts = stop_opts,
	.details =
	    "The next command that needs the daemon starts it again, and mounts the clones that\n"
	    "were mounted.\n",
	.examples = "stop\nstop --force\n",
	.run = stop_run,
};
