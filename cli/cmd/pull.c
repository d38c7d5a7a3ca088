#include <errno.h>

#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/fetched.h"
#include "cli/show/held.h"
#include "cli/show/promotions.h"
#include "cli/typed.h"
#include "engine/api/remote.h"
#include "engine/api/rollback.h"

struct pull_args {
	const char *tag;
	bool replace;
	struct opt_list allow;
	uint64_t rate, jobs;
	struct engine_trust trust;
	const char *identity;
};

static const struct opt pull_opts[] = {
	FETCHED_OPTS(struct pull_args),
	OPT_FLAG(0, "replace", struct pull_args, replace,
		 "replace changes of the project, after saving them"),
	OPT_LIST(0, "allow", "PATH", struct pull_args, allow, "let PATH pass the guard"),
	OPT_END,
};
_Static_assert(sizeof(struct pull_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

struct pulled {
	struct engine_fetched fetched;
	char since[ENGINE_ID_SIZE]; /* what both sides have in common; "": nothing is known */
	struct engine_rolled rolled;
};

static void pulled_done(struct pulled *p)
{
	engine_fetched_done(&p->fetched);
	engine_rolled_done(&p->rolled);
}

static void set_all(struct json j, const void *ctx)
{
	const struct pulled *p = ctx;

	fetched_set(j, &p->fetched);
	out_json_id(j, "saved", p->rolled.saved);
	out_json_id(j, "receipt", p->rolled.receipt);
	json_set_uint(j, "changed", p->rolled.changed);
	promotions_set_paths(j, "held", p->rolled.held, p->rolled.n_held, "rule");
}

static int print_changed(struct invocation *inv, const struct pulled *p)
{
	const char *const tag[] = { p->fetched.tag, NULL };
	struct err err = { 0 };

	err_set(
	    &err, -ESTALE,
	    "the project has changes of its own and stays as it is; the fetched snapshot is '%s'",
	    p->fetched.tag);
	if (p->since[0] != '\0') {
		cmd_hint_words(inv, "clone -n pulled --from", tag);
		cmd_hint_note(inv, "to merge both");
		cmd_hint(inv, "promote pulled");
	} else {
		/* Of a clone of it nothing would land: nothing tells its changes from the project's. */
		cmd_hint_words(inv, "diff .", tag);
	}
	cmd_hint_again(inv, &(struct hint_again){ .option = "replace" });
	return fail_with(inv, CMD_CONFLICT, &err, set_all, p);
}

static int print_conflict(struct invocation *inv, const struct pulled *p)
{
	const struct engine_rolled_path *first = &p->rolled.conflicts[0];
	struct err err = { 0 };

	err_set(&err, -ESTALE, "the project stays as it is: '%s' %s", first->path, first->why);
	cmd_hint_again(inv, &(struct hint_again){ 0 });
	return fail_with(inv, CMD_CONFLICT, &err, set_all, p);
}

static void list_held(const struct invocation *inv, const void *ctx)
{
	const struct pulled *p = ctx;

	held_print(inv, stderr, p->rolled.held, p->rolled.n_held);
}

static int print_held(struct invocation *inv, const struct pulled *p)
{
	struct err err = { 0 };
	int code;

	held_say("the project stays as it is: somebody else wrote the fetched files, and",
		 p->rolled.held, p->rolled.n_held, &err);
	if (p->rolled.n_held > 1)
		inv->print_more = list_held;
	inv->more = p;
	cmd_hint_again(inv,
		       &(struct hint_again){ .option = "allow", .value = p->rolled.held[0].path });
	code = fail_with(inv, CMD_REFUSED, &err, set_all, p);
	inv->print_more = NULL;
	return code;
}

static void print_human(const struct invocation *inv, const struct pulled *p)
{
	fetched_print(inv, &p->fetched);
	fputs("  ", inv->out);
	out_plural(inv->out, p->rolled.changed, "path", "paths");
	fputs(" of the project changed\n", inv->out);
	if (p->rolled.saved[0] != '\0')
		promotions_print_saved(inv, p->rolled.saved, NULL, p->rolled.receipt);
}

static int print_json(const struct invocation *inv, const struct pulled *p, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	set_all(j, p);
	json_set_uint(j, "elapsed_ms", p->fetched.elapsed_ms + p->rolled.elapsed_ms);
	return json_print(&doc, inv->out, err);
}

/* Make the project that snapshot, unless it has changes that would be lost. */
static int apply(struct invocation *inv, struct pulled *p, struct err *err)
{
	const struct pull_args *args = inv->args;
	const char *since = p->since[0] != '\0' ? p->since : p->fetched.snapshot.id;
	CLEANUP(typed_done) struct typed allow = { 0 };
	struct engine_rollback_options options = { .first = p->fetched.snapshot.id,
						   .since = args->replace ? NULL : since,
						   .remember = true,
						   .watch = progress_watch(inv->progress) };
	int r = typed_read(&allow, &args->allow, err);

	if (r < 0)
		return r;
	options.allow = typed_list(&allow);
	return engine_rollback(inv->engine, &options, &p->rolled, err);
}

static int pull_run(struct invocation *inv, struct err *err)
{
	const struct pull_args *args = inv->args;
	CLEANUP(pulled_done) struct pulled p = { 0 };
	const struct engine_fetch_options options = FETCHED_OPTIONS(inv, args);
	int r = engine_fetch_for(inv->engine, &options, &p.fetched, p.since, err);

	if (r == 0)
		r = apply(inv, &p, err);
	progress_done(inv->progress);
	fetched_hint(inv, options.from, r);
	if (r < 0)
		return r;
	if (p.rolled.edited)
		return print_changed(inv, &p);
	if (p.rolled.n_conflicts > 0)
		return print_conflict(inv, &p);
	if (p.rolled.n_held > 0)
		return print_held(inv, &p);
	engine_fetch_applied(inv->engine, &p.fetched, p.rolled.receipt[0] != '\0');
	if (inv->json)
		return print_json(inv, &p, err);
	if (inv->quiet)
		fprintf(inv->out, "%s\n", p.fetched.snapshot.id);
	else
		print_human(inv, &p);
	return CMD_OK;
}

const struct command cmd_pull = {
	.name = "pull",
	.group = "Snapshots",
	.rare = true,
	.summary = "fetch a snapshot and make the project look like it",
	.words = "REMOTE[:NAME]",
	.min_words = 1,
	.max_words = 1,
	.opts = pull_opts,
	.details =
	    "Fetches, then rolls the project back to the fetched snapshot: your state is saved first,\n"
	    "`undo` takes the pull back, the guard holds files that other programs execute (exit code\n"
	    "7), and .git stays. If the project changed since the last push or pull, nothing happens\n"
	    "(5); merge with `clone --from REMOTE/NAME` and `promote`. -q prints the snapshot's id.\n",
	.examples = "pull origin\npull origin:nightly --replace\n",
	.run = pull_run,
};
