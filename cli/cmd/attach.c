#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/log.h"
#include "cli/interrupt.h"
#include "cli/show/runs.h"

/* To where the run itself would have written it. */
static int print_bytes(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	const struct invocation *inv = ctx;
	int r = fdio_write(of_stderr ? STDERR_FILENO : fileno(inv->out), data, len);

	return r < 0 ? err_set(err, r, "writing what the run wrote") : 0;
}

static int detach(struct invocation *inv, const struct engine_run *run)
{
	AUTO_FREE char *again = cmd_line(inv, "attach", (const char *[]){ run->id, NULL });

	if (!inv->quiet)
		log_warn("detached: run %s goes on", run->id);
	if (!inv->quiet && again)
		fprintf(stderr, "hint: %s\n", again);
	return 128 + SIGINT;
}

/* How it ended stands in the record by now. */
static int end(struct invocation *inv, struct engine_run *run, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run now = { 0 };
	int r = engine_run_find(inv->engine, run->id, &now, err);

	if (r < 0)
		return r;
	if (inv->json)
		return runs_code(&now);
	if (now.log_truncated && !inv->quiet)
		log_warn("only the first 16 MiB of each stream are kept, and were shown");
	if (now.problem)
		log_error("%s", now.problem);
	if (now.state == ENGINE_RUN_CANCELLED && !inv->quiet)
		log_warn("the run was cancelled");
	return runs_code(&now);
}

static int attach_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	struct engine_log_options options = { .follow = true };
	int r = engine_run_find(inv->engine, inv->words[0], &run, err);

	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "ps");
	if (r < 0)
		return r;
	r = interrupt_catch((const int[]){ SIGINT }, 1, err);
	if (r < 0)
		return r;
	options.stop_fd = r;
	if (inv->json)
		r = runs_print_log(inv, &run, &options, false, err);
	else
		r = engine_run_log(inv->engine, &run, &options, print_bytes, inv, NULL, err);
	if (r == -EINTR)
		return detach(inv, &run);
	return r < 0 ? r : end(inv, &run, err);
}

const struct command cmd_attach = {
	.name = "attach",
	.group = "Runs",
	.rare = true,
	.summary = "follow what a run writes, and end as it does",
	.words = "RUN",
	.min_words = 1,
	.max_words = 1,
	.details =
	    "Follows both streams from the beginning, and ends with the exit code of the run. ^C\n"
	    "ends this command (130), not the run; `cancel` ends the run.\n",
	.examples = "attach 3f9a\n",
	.run = attach_run,
};
