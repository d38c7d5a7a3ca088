#include <errno.h>

#include "base/size.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "engine/api/remote.h"

struct fetch_args {
	const char *tag;
	uint64_t rate;
};

static const struct opt fetch_opts[] = {
	OPT_STR('t', "tag", "TAG", struct fetch_args, tag,
		"what to call it here (default: REMOTE/NAME)"),
	OPT_SIZE(0, "rate", "SIZE", struct fetch_args, rate, "bytes a second at most"),
	OPT_END,
};
_Static_assert(sizeof(struct fetch_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_fetched *f, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "remote", f->remote);
	json_set_text(j, "name", f->name);
	json_set_name(j, "project", f->project);
	json_set_bool(j, "registered", f->registered);
	json_set_text(j, "snapshot", f->snapshot.id);
	json_set_name(j, "tag", f->tag);
	json_set_text(j, "message", f->snapshot.message);
	json_set_text(j, "manifest", f->manifest);
	json_set_text(j, "root", f->root);
	json_set_uint(j, "files", f->snapshot.files);
	json_set_uint(j, "bytes", f->snapshot.bytes);
	json_set_uint(j, "bytes_received", f->bytes_received);
	json_set_uint(j, "packs_received", f->packs_received);
	json_set_uint(j, "packs", f->packs);
	json_set_uint(j, "objects", f->objects);
	json_set_uint(j, "elapsed_ms", f->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

/* "fetched  0c4f11d2 as origin/main  80,000 files, received 84 MiB, in 2.1 s" */
static void print_human(const struct invocation *inv, const struct engine_fetched *f)
{
	char size[SIZE_TEXT_MAX], time[DURATION_TEXT_MAX];

	fprintf(inv->out, "fetched  %s%.*s%s as ", out_style(inv, OUT_ID), OUT_SHORT_ID,
		f->snapshot.id, out_style(inv, OUT_PLAIN));
	out_name(inv->out, f->tag);
	fputs("  ", inv->out);
	out_plural(inv->out, f->snapshot.files, "file", "files");
	fprintf(inv->out, ", received %s, in %s\n", size_format(f->bytes_received, size),
		duration_format(f->elapsed_ms, time));
}

static int fetch_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched fetched = { 0 };
	const struct fetch_args *args = inv->args;
	const struct engine_fetch_options options = {
		.from = inv->words[0],
		.tag = args->tag,
		.rate = args->rate,
		.watch = progress_watch(inv->progress),
	};
	int r = engine_fetch(inv->engine, &options, &fetched, err);

	progress_done(inv->progress);
	if (r == -ENOENT) {
		cmd_hint(inv, "remote list");
		cmd_hint_words(inv, "remote log", (const char *[]){ inv->words[0], NULL });
	}
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &fetched, err);
	if (inv->quiet)
		fprintf(inv->out, "%s\n", fetched.snapshot.id);
	else
		print_human(inv, &fetched);
	return CMD_OK;
}

const struct command cmd_fetch = {
	.name = "fetch",
	.group = "Snapshots",
	.rare = true,
	.summary = "bring a snapshot from a remote into the store",
	.words = "REMOTE[:NAME]",
	.min_words = 1,
	.max_words = 1,
	.opts = fetch_opts,
	.details =
	    "The project's files stay as they are; the snapshot becomes one of the project with the\n"
	    "tag REMOTE/NAME: `diff . origin/main`, `clone --from origin/main`. Only packs that this\n"
	    "store lacks are brought, every byte is checked against its SHA-256 before it is stored,\n"
	    "and what an interrupted fetch brought is kept. It counts as a stranger's state: a\n"
	    "rollback to it passes the guard. -q prints the id of the snapshot.\n",
	.examples =
	    "fetch origin\nfetch origin:nightly\nfetch dir:/mnt/share/app:nightly -t nightly\n",
	.run = fetch_run,
};
