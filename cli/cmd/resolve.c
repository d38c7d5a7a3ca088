#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/vec.h"
#include "cli/choice.h"
#include "cli/editor.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/conflicts.h"
#include "cli/show/promotions.h"
#include "engine/api/clone.h"
#include "engine/api/resolve.h"

struct resolve_args {
	const char *take;
	bool edit, undo, all, with_hunks;
};

static const struct opt resolve_opts[] = {
	OPT_STR(0, "take", "ours|theirs|FILE", struct resolve_args, take,
		"the project's, the clone's, or what is in FILE (- is standard input)"),
	OPT_FLAG(0, "edit", struct resolve_args, edit,
		 "open it with markers in $VISUAL or $EDITOR"),
	OPT_FLAG(0, "undo", struct resolve_args, undo, "take back what was decided for PATH"),
	OPT_FLAG(0, "all", struct resolve_args, all, "every conflict that is open"),
	OPT_FLAG(0, "with-hunks", struct resolve_args, with_hunks,
		 "with --json: the texts of conflicts, too"),
	OPT_END,
};
_Static_assert(sizeof(struct resolve_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

struct resolving {
	struct invocation *inv;
	const struct resolve_args *args;
	const char *clone; /* NULL: the one that holds the directory */
	int first;         /* of the words: the first path */
	struct engine_promotion now;
};

static void resolving_done(struct resolving *r)
{
	engine_promotion_done(&r->now);
}

/* --- what is meant ---------------------------------------------------------------------- */

/* In a clone's directory a word that names no clone is a path. */
static void find_clone(struct resolving *r)
{
	const struct invocation *inv = r->inv;
	AUTO_FREE char *here = engine_clone_here(inv->engine);

	if (inv->n_words == 0 || (here && !engine_has_clone(inv->engine, inv->words[0])))
		return;
	r->clone = inv->words[0];
	r->first = 1;
}

static int check(const struct resolving *r, struct err *err)
{
	const struct resolve_args *args = r->args;
	const bool paths = r->inv->n_words > r->first;
	const int ways = (args->take != NULL) + args->edit + args->undo;

	if (ways > 1)
		return err_set(err, -EINVAL,
			       "options '--take', '--edit' and '--undo' exclude each other");
	if (ways == 0 && (paths || args->all))
		return err_set(err, -EINVAL,
			       "no resolution is given: use --take ours (the project's version), "
			       "--take theirs (the clone's), --take FILE or --edit");
	if (ways == 1 && paths == args->all)
		return err_set(err, -EINVAL, "a PATH is needed, or '--all'");
	if (args->edit && !choice_possible(r->inv))
		return err_set(err, -EINVAL,
			       "option '--edit' needs a terminal; '--take FILE' does not");
	return 0;
}

static bool is_path(const char *word, const char *path)
{
	AUTO_FREE char *unescaped = NULL;

	if (strcmp(word, path) == 0)
		return true;
	return path_unescape(word, &unescaped) > 0 && strcmp(unescaped, path) == 0;
}

static const struct engine_conflict *find_conflict(const struct resolving *r, const char *word)
{
	return VEC_FIND(it, r->now.conflicts, r->now.n_conflicts, is_path(word, it->path));
}

static int look(struct resolving *r, bool with_hunks, struct err *err)
{
	const struct engine_promote_options options = {
		.clone = r->clone,
		.with_hunks = with_hunks,
		.watch = progress_watch(r->inv->progress),
	};
	int x;

	engine_promotion_done(&r->now);
	x = engine_conflicts(r->inv->engine, &options, &r->now, err);
	progress_done(r->inv->progress);
	if (x == -ENOENT)
		cmd_hint(r->inv, "list");
	return x;
}

/* --- deciding --------------------------------------------------------------------------- */

static void remove_file(char **path)
{
	if (*path)
		unlink(*path);
	free(*path);
}

/* With markers where both are there, else the one that is. */
static int edit(struct resolving *r, const struct engine_conflict *c,
		struct engine_resolve_options *o, char **path, struct err *err)
{
	const char *text = c->marked ? c->marked : c->texts[2] ? c->texts[2] : c->texts[1];
	int x;

	if (!text) {
		cmd_hint(r->inv, "help resolve");
		return err_set(err, -EINVAL,
			       "'%s' is no text, or too long, to be edited here: use --take FILE",
			       c->path);
	}
	x = editor_open(text, c->path, path, err);
	if (x >= 0)
		x = editor_has_markers(*path, err);
	if (x > 0) {
		x = err_set(err, -ECANCELED, "markers are left in '%s', so nothing is decided",
			    c->path);
		cmd_hint_again(r->inv, &(struct hint_again){ 0 });
	}
	o->take = ENGINE_TAKE_FILE;
	o->file = *path;
	return x;
}

static int settle(struct resolving *r, const struct engine_conflict *c, struct err *err)
{
	CLEANUP(remove_file) char *edited = NULL;
	const char *take = r->args->take;
	struct engine_resolve_options o = {
		.clone = r->now.clone,
		.path = c->path,
		.versions = c->versions,
	};
	int x = 0;

	if (take && strcmp(take, "ours") == 0) {
		o.take = ENGINE_TAKE_OURS;
	} else if (take && strcmp(take, "theirs") == 0) {
		o.take = ENGINE_TAKE_THEIRS;
	} else if (!c->file && !r->args->undo) {
		return err_set(err, -EINVAL,
			       "'%s' is a file on neither side: --take ours or --take theirs",
			       c->path);
	} else if (take) {
		o.take = ENGINE_TAKE_FILE;
		o.file = strcmp(take, "-") == 0 ? "/dev/stdin" : take;
	} else if (r->args->edit) {
		x = edit(r, c, &o, &edited, err);
	}
	return x < 0 ? x : engine_resolve(r->inv->engine, &o, err);
}

static int settle_all(struct resolving *r, struct err *err)
{
	const char *last = NULL;
	int x = 0;

	for (size_t i = 0; i < r->now.n_conflicts && x >= 0; i++) {
		const struct engine_conflict *c = &r->now.conflicts[i];
		const bool open = r->args->undo ? c->take != ENGINE_TAKE_NONE : !c->settled;

		if (open && (!last || strcmp(last, c->path) != 0))
			x = settle(r, c, err);
		last = c->path;
	}
	return x;
}

static int undo_gone(struct resolving *r, const char *word, struct err *err)
{
	AUTO_FREE char *unescaped = NULL;
	struct engine_resolve_options o = { .clone = r->now.clone, .path = word };
	int x = engine_resolve(r->inv->engine, &o, err);

	if (x != -ENOENT || path_unescape(word, &unescaped) <= 0)
		return x;
	o.path = unescaped;
	return engine_resolve(r->inv->engine, &o, err);
}

static int settle_words(struct resolving *r, struct err *err)
{
	int x = 0;

	/* All of them, or none: a name that was mistyped is found first. */
	for (int i = r->first; i < r->inv->n_words && !r->args->undo; i++)
		if (!find_conflict(r, r->inv->words[i])) {
			cmd_hint_words(r->inv, "resolve", (const char *[]){ r->now.clone, NULL });
			return err_set(err, -ENOENT, "'%s' does not conflict", r->inv->words[i]);
		}
	for (int i = r->first; i < r->inv->n_words && x >= 0; i++) {
		const struct engine_conflict *c = find_conflict(r, r->inv->words[i]);

		x = c ? settle(r, c, err) : undo_gone(r, r->inv->words[i], err);
	}
	return x;
}

/* --- telling ---------------------------------------------------------------------------- */

static size_t count_open(const struct resolving *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->now.n_conflicts; i++)
		n += !r->now.conflicts[i].settled;
	return n;
}

static int print_json(const struct resolving *r, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(r->inv, &doc);

	json_set_name(j, "clone", r->now.clone);
	json_set_name(j, "project", r->now.project);
	conflicts_set_json(j, r->now.conflicts, r->now.n_conflicts);
	json_set_uint(j, "open", count_open(r));
	return json_print(&doc, r->inv->out, err);
}

static void print_quiet(const struct resolving *r)
{
	for (size_t i = 0; i < r->now.n_conflicts; i++)
		if (!r->now.conflicts[i].settled)
			out_name_line(r->inv->out, r->now.conflicts[i].path);
}

static void print_human(const struct resolving *r)
{
	const struct invocation *inv = r->inv;
	AUTO_FREE char *line = NULL;

	if (r->now.n_conflicts == 0) {
		out_name(inv->out, r->now.clone);
		fputs(" has no conflict with the project\n", inv->out);
		return;
	}
	out_plural(inv->out, r->now.n_conflicts, "conflict", "conflicts");
	fputs(" of ", inv->out);
	out_name(inv->out, r->now.clone);
	fprintf(inv->out, ", %zu open; ours is the project's, theirs the clone's\n", count_open(r));
	conflicts_print(inv, inv->out, r->now.clone, r->now.conflicts, r->now.n_conflicts);
	if (count_open(r) == 0)
		line =
		    cmd_line(inv, "promote", (const char *[]){ "--continue", r->now.clone, NULL });
	if (line)
		fprintf(inv->out, "hint: %s\n", line);
}

static int resolve_run(struct invocation *inv, struct err *err)
{
	CLEANUP(resolving_done) struct resolving r = { .inv = inv, .args = inv->args };
	const bool decides = r.args->take || r.args->edit || r.args->undo;
	int x;

	find_clone(&r);
	x = check(&r, err);
	if (x < 0) {
		cmd_hint(inv, "help resolve");
		return x;
	}
	x = look(&r, r.args->edit || (r.args->with_hunks && !decides), err);
	if (x >= 0 && decides)
		x = r.args->all ? settle_all(&r, err) : settle_words(&r, err);
	if (x >= 0 && decides)
		x = look(&r, r.args->with_hunks, err);
	if (x < 0)
		return x;
	if (inv->json)
		return print_json(&r, err);
	if (inv->quiet && !decides)
		print_quiet(&r);
	else if (!inv->quiet)
		print_human(&r);
	return CMD_OK;
}

const struct command cmd_resolve = {
	.name = "resolve",
	.group = "Changes",
	.summary = "settle conflicts of a clone with the project, path by path",
	.words = "[CLONE] [PATH...]",
	.max_words = 1000000,
	.opts = resolve_opts,
	.details =
	    "Without an option: lists the conflicts and what you decided for each. `ours` is the\n"
	    "project's version, `theirs` the clone's; in a text they decide the places that\n"
	    "conflict, and the rest is merged. --take FILE takes the file whole. Decisions stay\n"
	    "with the clone, and `promote` and `rebase` use them while both versions stay the\n"
	    "same; after a change of either you decide again. Nothing changes before you promote\n"
	    "or rebase.\n",
	.examples =
	    "resolve idea\nresolve idea src/main.c --take theirs\nresolve idea --all --take ours\n"
	    "resolve idea src/main.c --edit\nresolve idea src/main.c --undo\n"
	    "promote --continue idea\n",
	.run = resolve_run,
};
