#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/fetched.h"
#include "engine/api/remote.h"

struct fetch_args {
	const char *tag;
	uint64_t rate, jobs;
	struct engine_trust trust;
	const char *identity;
};

static const struct opt fetch_opts[] = {
	FETCHED_OPTS(struct fetch_args),
	OPT_END,
};
_Static_assert(sizeof(struct fetch_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_fetched *f, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	fetched_set(j, f);
	json_set_uint(j, "elapsed_ms", f->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

static int fetch_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_fetched_done) struct engine_fetched fetched = { 0 };
	const struct fetch_args *args = inv->args;
	const struct engine_fetch_options options = FETCHED_OPTIONS(inv, args);
	int r = engine_fetch(inv->engine, &options, &fetched, err);

	progress_done(inv->progress);
	fetched_hint(inv, options.from, r);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, &fetched, err);
	if (inv->quiet)
		fprintf(inv->out, "%s\n", fetched.snapshot.id);
	else
		fetched_print(inv, &fetched);
	return CMD_OK;
}

const struct command cmd_fetch = {
	.name = "fetch",
	.group = "Snapshots",
	.rare = true,
	.summary = "copy a snapshot from a remote into the store",
	.words = "REMOTE[:NAME]",
	.min_words = 1,
	.max_words = 1,
	.opts = fetch_opts,
	.details =
	    "The project's files stay as they are. The snapshot gets the tag REMOTE/NAME: `diff .\n"
	    "origin/main`, `clone --from origin/main`. Only packs that this store lacks travel. snap\n"
	    "checks every byte against its SHA-256 before it stores it, and continues an interrupted\n"
	    "fetch where it stopped. Somebody else wrote the snapshot, so the guard checks a rollback\n"
	    "to it. -q prints the id of the snapshot.\n",
	.examples =
	    "fetch origin\nfetch origin:nightly\nfetch dir:/mnt/share/app:nightly -t nightly\n",
	.run = fetch_run,
};
