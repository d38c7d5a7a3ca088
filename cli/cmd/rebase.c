#include <errno.h>

#include "base/size.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/conflicts.h"
#include "cli/show/promotions.h"
#include "engine/api/rebase.h"

struct rebase_args {
	const char *conflict, *markers;
	bool dry_run, skip_unreadable;
};

static const struct opt rebase_opts[] = {
	OPT_STR(0, "conflict", "HOW", struct rebase_args, conflict,
		"stop (default), ours (the project's), theirs (the clone's) or markers"),
	OPT_STR(0, "markers", "STYLE", struct rebase_args, markers,
		"merge (default), diff3 or zdiff3"),
	OPT_FLAG(0, "skip-unreadable", struct rebase_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_FLAG('n', "dry-run", struct rebase_args, dry_run, "only say what would change"),
	OPT_END,
};
_Static_assert(sizeof(struct rebase_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void set_all(struct json j, const void *ctx)
{
	const struct engine_rebased *r = ctx;

	json_set_name(j, "clone", r->clone);
	json_set_name(j, "project", r->project);
	out_json_id(j, "from", r->from);
	out_json_id(j, "onto", r->onto);
	out_json_id(j, "saved", r->saved);
	json_set_bool(j, "dry_run", r->dry_run);
	promotions_set_paths(j, "changed", r->paths, r->n_paths, NULL);
	json_set_bool(j, "truncated", r->n_paths < r->changed);
	json_set_uint(j, "merged", r->merged);
	conflicts_set_json(j, r->conflicts, r->n_conflicts);
	promotions_set_paths(j, "left", r->left, r->n_left, NULL);
	json_set_uint(j, "elapsed_ms", r->elapsed_ms);
}

/* --- for people ------------------------------------------------------------------------- */

static void print_head(const struct invocation *inv, const struct engine_rebased *r)
{
	char time[DURATION_TEXT_MAX];

	fputs(r->dry_run ? "would rebase " : "rebased ", inv->out);
	out_name(inv->out, r->clone);
	if (r->onto[0] != '\0')
		out_id(inv, " onto ", r->onto);
	fputs("  ", inv->out);
	out_plural(inv->out, r->changed, "path", "paths");
	fputs(r->dry_run ? " would change in it" : " changed in it", inv->out);
	if (r->merged > 0) {
		fputs(", ", inv->out);
		out_plural(inv->out, r->merged, "text", "texts");
		fputs(" merged from both sides", inv->out);
	}
	fprintf(inv->out, ", in %s\n", duration_format(r->elapsed_ms, time));
}

static void print_human(const struct invocation *inv, const struct engine_rebased *r)
{
	if (r->onto[0] != '\0' && r->saved[0] == '\0') {
		fputs("nothing to rebase: the project is as it was\n", inv->out);
		return;
	}
	print_head(inv, r);
	promotions_print_paths(inv, r->paths, r->n_paths);
	conflicts_print(inv, inv->out, r->clone, r->conflicts, r->n_conflicts);
	for (size_t i = 0; i < r->n_left; i++) {
		fputs("  left alone: ", inv->out);
		out_name(inv->out, r->left[i].path);
		fputs(", which both sides changed: it is the clone's\n", inv->out);
	}
	if (r->saved[0] != '\0')
		promotions_print_saved(inv, r->saved, r->clone, "");
}

static void list_conflicts(const struct invocation *inv, const void *ctx)
{
	const struct engine_rebased *r = ctx;

	conflicts_print(inv, stderr, r->clone, r->conflicts, r->n_conflicts);
}

static int print_conflicts(struct invocation *inv, const struct engine_rebased *r)
{
	struct err err = { 0 };
	size_t n;
	const struct engine_conflict *c = conflicts_first_open(r->conflicts, r->n_conflicts, &n);

	conflicts_say_open("rebased", r->conflicts, r->n_conflicts, &err);
	inv->print_more = list_conflicts;
	inv->more = r;
	cmd_hint_again(inv, &(struct hint_again){ .option = "conflict", .value = "markers" });
	cmd_hint_note(inv,
		      "usual: put both versions, marked, into the clone's files; edit them there");
	cmd_hint_words(inv, "resolve", (const char *[]){ r->clone, NULL });
	cmd_hint_note(inv, "list the conflicts; settle each, then rebase again");
	conflicts_hint_sides(inv, c,
			     (const char *const[]){ "the base: the file before both changes",
						    "the project's version",
						    "the clone's version" });
	return fail_with(inv, CMD_CONFLICT, &err, set_all, r);
}

static int rebase_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_rebased_done) struct engine_rebased rebased = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	const struct rebase_args *args = inv->args;
	struct engine_rebase_options options = {
		.clone = inv->n_words > 0 ? inv->words[0] : NULL,
		.skip_unreadable = args->skip_unreadable,
		.dry_run = args->dry_run,
		.watch = progress_watch(inv->progress),
	};
	int r = conflicts_read_ways(args->conflict, args->markers, &options.on_conflict,
				    &options.style, err);

	if (r < 0)
		return r;
	r = engine_rebase(inv->engine, &options, &rebased, err);
	progress_done(inv->progress);
	if (r == -ENOENT)
		cmd_hint(inv, "list");
	if (!args->skip_unreadable)
		cmd_hint_if_unreadable(inv, r, err);
	if (r < 0)
		return r;
	if (rebased.conflicted && !rebased.dry_run)
		return print_conflicts(inv, &rebased);
	if (inv->json) {
		set_all(out_json_begin(inv, &doc), &rebased);
		r = json_print(&doc, inv->out, err);
	} else if (inv->quiet && rebased.saved[0] != '\0') {
		fprintf(inv->out, "%s\n", rebased.saved);
	} else if (!inv->quiet) {
		print_human(inv, &rebased);
	}
	/* A dry run ends as the act would. */
	return r < 0 ? r : rebased.conflicted ? CMD_CONFLICT : CMD_OK;
}

const struct command cmd_rebase = {
	.name = "rebase",
	.group = "Changes",
	.summary = "move a clone to the project's present state",
	.words = "[CLONE]",
	.max_words = 1,
	.opts = rebase_opts,
	.details =
	    "Merges what the clone changed since its base onto the project as it is now, which\n"
	    "becomes the new base. Programs that run in the clone go on and keep their open\n"
	    "files. A conflict (5) changes nothing. The clone is saved first, as a snapshot whose\n"
	    "id is printed: `rollback CLONE ID` takes the rebase back. The clone keeps its .git\n"
	    "if both sides changed it.\n",
	.examples = "rebase idea\nrebase --dry-run idea\nrebase --conflict markers idea\n",
	.run = rebase_run,
};
