#include <errno.h>
#include <string.h>

#include "cli/runs.h"
#include "cli/screen.h"

struct logs_args {
	bool follow, of_stderr;
};

static const struct opt logs_opts[] = {
	OPT_FLAG('f', "follow", struct logs_args, follow, "go on until the run has ended"),
	OPT_FLAG(0, "stderr", struct logs_args, of_stderr, "what it wrote to stderr"),
	OPT_END,
};
_Static_assert(sizeof(struct logs_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* As it comes: who follows wants to see it now. */
static int print_bytes(const void *data, size_t len, void *ctx, struct err *err)
{
	struct screen *screen = ctx;
	int r = screen_write(screen, data, len, err);

	if (r >= 0 && fflush(screen->out) == EOF)
		return err_sys(err, "writing to standard output");
	return r;
}

static int keep_bytes(const void *data, size_t len, void *ctx, struct err *err)
{
	return buf_append(ctx, data, len) < 0 ? err_nomem(err) : 0;
}

static int print_json(const struct invocation *inv, const struct engine_run *run, bool follow,
		      struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);
	static const char *const keys[] = { "stdout", "stderr" };
	int r = 0;

	json_set_text(j, "run", run->id);
	for (int i = 0; i < 2 && r >= 0; i++) {
		CLEANUP(buf_done) struct buf text = BUF_INIT;

		r = engine_run_log(inv->engine, run, i == 1, follow, keep_bytes, &text, err);
		json_set_text_len(j, keys[i], (const char *)text.data, text.len);
	}
	json_set_bool(j, "truncated", run->log_truncated);
	return r < 0 ? r : json_print(&doc, inv->out, err);
}

static int logs_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	CLEANUP(screen_done) struct screen screen = { 0 };
	const struct logs_args *args = inv->args;
	int r;

	r = engine_run_find(inv->engine, inv->n_words > 0 ? inv->words[0] : NULL, &run, err);
	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "runs --all");
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &run, args->follow, err);
	screen_begin(&screen, inv);
	r = engine_run_log(inv->engine, &run, args->of_stderr, args->follow, print_bytes, &screen,
			   err);
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
	    "By the run's id or the beginning of it; without RUN, of the newest. Of each stream\n"
	    "the first 16 MiB are kept. On a terminal control characters are shown, not obeyed.\n",
	.examples = "logs\nlogs 3f9a --follow\nlogs 3f9a --stderr\n",
	.run = logs_run,
};
