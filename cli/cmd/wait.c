#include <errno.h>

#include "cli/show/runs.h"

struct wait_args {
	uint64_t timeout;
	bool any;
};

static const struct opt wait_opts[] = {
	OPT_FLAG(0, "any", struct wait_args, any, "return when the first of them has ended"),
	OPT_DURATION(0, "timeout", "TIME", struct wait_args, timeout,
		     "wait no longer than this; the exit code is then 124"),
	OPT_END,
};
_Static_assert(sizeof(struct wait_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void preset(void *to)
{
	((struct wait_args *)to)->timeout = ENGINE_UNSAID;
}

static bool is_over(const struct engine_run *r)
{
	return r->state != ENGINE_RUN_RUNNING;
}

/* That of the first that failed, in the order in which they were named. */
static int code_of(const struct engine_runs *runs)
{
	int code = 0;

	for (size_t i = 0; i < runs->n && code == 0; i++)
		code = is_over(&runs->list[i]) ? runs_code(&runs->list[i]) : 0;
	return code;
}

static int print_json(const struct invocation *inv, const struct engine_runs *runs, bool complete,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), list = json_set_array(j, "runs");

	for (size_t i = 0; i < runs->n; i++)
		runs_set_end(json_add_object(list), &runs->list[i]);
	json_set_bool(j, "complete", complete);
	return json_print(&doc, inv->out, err);
}

static void print_human(const struct invocation *inv, const struct engine_runs *runs)
{
	char outcome[OUT_COUNT_MAX];

	for (size_t i = 0; i < runs->n; i++) {
		const struct engine_run *r = &runs->list[i];

		if (inv->quiet && is_over(r))
			fprintf(inv->out, "%s\n", r->id);
		else if (!inv->quiet)
			fprintf(inv->out, "%s%s%s  %s\n", out_style(inv, OUT_ID), r->id,
				out_style(inv, OUT_PLAIN), runs_outcome(r, outcome));
	}
}

static int wait_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const struct wait_args *args = inv->args;
	const struct engine_wait_options options = {
		.ids = (const char *const *)inv->words,
		.n = (size_t)inv->n_words,
		.any = args->any,
		.timeout_ms = args->timeout,
		.stop_fd = -1,
	};
	int r = engine_run_wait(inv->engine, &options, &runs, err), printed = 0;

	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "runs --all");
	if (r < 0)
		return r;
	if (inv->json)
		printed = print_json(inv, &runs, r == 0, err);
	else
		print_human(inv, &runs);
	return printed < 0 ? printed : r > 0 ? CMD_TIME_UP : code_of(&runs);
}

const struct command cmd_wait = {
	.name = "wait",
	.group = "Runs",
	.rare = true,
	.summary = "wait until runs have ended",
	.words = "RUN...",
	.min_words = 1,
	.max_words = 10000,
	.opts = wait_opts,
	.preset = preset,
	.details =
	    "Ends with the exit code of the run, or of the first in your list that failed; 143\n"
	    "means that it was cancelled, 137 that it was lost, 124 that the time was up. You can\n"
	    "wait for runs in other terminals too.\n",
	.examples = "wait 3f9a\nwait --any 3f9a 81c0\nwait --timeout 30s --json 3f9a\n",
	.run = wait_run,
};
