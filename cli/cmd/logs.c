#include <errno.h>

#include "cli/screen.h"
#include "cli/show/runs.h"
#include "cli/show/usage.h"

struct logs_args {
	uint64_t since;
	bool follow, of_stdout, of_stderr, usage;
};

static const struct opt logs_opts[] = {
	OPT_FLAG('f', "follow", struct logs_args, follow, "go on until the run has ended"),
	OPT_FLAG(0, "stdout", struct logs_args, of_stdout, "only what it wrote to stdout"),
	OPT_FLAG(0, "stderr", struct logs_args, of_stderr, "only what it wrote to stderr"),
	OPT_U64(0, "since", "OFFSET", struct logs_args, since,
		"skip the first N bytes; `next` in --json is the N for the next time"),
	OPT_FLAG(0, "usage", struct logs_args, usage,
		 "print what it used over time instead (with --json: as well)"),
	OPT_END,
};
_Static_assert(sizeof(struct logs_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* As it comes: a person who follows wants to see it now. */
static int print_bytes(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	struct screen *screen = ctx;
	int r = screen_write(screen, data, len, err);

	if (r < 0)
		return r;
	if (fflush(screen->out) == EOF)
		return err_sys(err, "writing to standard output");
	return r;
}

static int logs_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	CLEANUP(screen_done) struct screen screen = { 0 };
	const struct logs_args *args = inv->args;
	const struct engine_log_options options = {
		.streams = args->of_stdout == args->of_stderr ? ENGINE_LOG_BOTH
			   : args->of_stderr                  ? ENGINE_LOG_ERR
							      : ENGINE_LOG_OUT,
		.since = args->since,
		.follow = args->follow,
		.stop_fd = -1,
	};
	int r = engine_run_find(inv->engine, inv->n_words > 0 ? inv->words[0] : NULL, &run, err);

	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "runs --all");
	if (r < 0)
		return r;
	if (inv->json)
		return runs_print_log(inv, &run, &options, args->usage, err);
	if (args->usage)
		return usage_print(inv, &run, err);
	screen_begin(&screen, inv);
	r = engine_run_log(inv->engine, &run, &options, print_bytes, &screen, NULL, err);
	return r < 0 ? r : screen_flush(&screen, err);
}

const struct command cmd_logs = {
	.name = "logs",
	.group = "Runs",
	.summary = "print what a run wrote",
	.words = "[RUN]",
	.max_words = 1,
	.opts = logs_opts,
	.details =
	    "RUN is the run's id or the beginning of it; without RUN, the newest run. Prints both\n"
	    "streams in the order in which they were written, at most the first 16 MiB of each.\n"
	    "On a terminal control characters are shown, not obeyed. --usage has at most 120 samples.\n",
	.examples = "logs 3f9a --follow\nlogs 3f9a --usage\nlogs --json --since 4096 3f9a\n",
	.run = logs_run,
};
