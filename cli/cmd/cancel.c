#include <errno.h>

#include "cli/show/runs.h"

static int print_json(const struct invocation *inv, const struct engine_run *run, bool over,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	runs_set_end(j, run);
	json_set_bool(j, "was_over", over);
	return json_print(&doc, inv->out, err);
}

static int cancel_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	char outcome[OUT_COUNT_MAX];
	int r = engine_run_cancel(inv->engine, inv->words[0], &run, err);

	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "ps");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &run, r > 0, err);
	if (inv->quiet)
		return CMD_OK;
	if (r > 0)
		fprintf(inv->out, "run %s was over already: %s\n", run.id,
			runs_outcome(&run, outcome));
	else
		fprintf(inv->out, "cancelled  %s\n", run.id);
	return CMD_OK;
}

const struct command cmd_cancel = {
	.name = "cancel",
	.group = "Runs",
	.rare = true,
	.summary = "end a run, wherever it was started",
	.words = "RUN",
	.min_words = 1,
	.max_words = 1,
	.details =
	    "All of its processes get SIGTERM, and after two seconds SIGKILL. When this command\n"
	    "ends, so has the run; its record says 'cancelled', and its exit code is 143. Only\n"
	    "the user who started it can cancel it. A run that has ended stays as it is.\n",
	.examples = "cancel 3f9a\n",
	.run = cancel_run,
};
