#include <errno.h>

#include "base/size.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/held.h"
#include "cli/show/promotions.h"
#include "cli/show/steps.h"
#include "cli/typed.h"
#include "engine/api/clone.h"
#include "engine/api/rollback.h"
#include "engine/api/settings.h"

struct rollback_args {
	bool dry_run;
	bool no_git;
	bool skip_unreadable;
	bool yes;
	struct opt_list allow;
	struct opt_list paths;
	uint64_t turn;
	const char *session;
};

static const struct opt rollback_opts[] = {
	OPT_FLAG('n', "dry-run", struct rollback_args, dry_run, "only say what would change"),
	OPT_LIST(0, "path", "GLOB", struct rollback_args, paths,
		 "only paths that match, as in .gitignore; the rest stays"),
	OPT_U64(0, "turn", "N", struct rollback_args, turn,
		"to the state before this turn of an agent (`log --agent`)"),
	OPT_STR(0, "session", "ID", struct rollback_args, session,
		"the session of that turn (default: the newest)"),
	OPT_FLAG(0, "no-git", struct rollback_args, no_git, "leave the project's .git as it is"),
	OPT_FLAG(0, "skip-unreadable", struct rollback_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_LIST(0, "allow", "PATH", struct rollback_args, allow,
		 "let PATH pass the guard, if the state is a clone's"),
	OPT_FLAG('y', "yes", struct rollback_args, yes,
		 "for scripts; there is no question to answer"),
	OPT_END,
};
_Static_assert(sizeof(struct rollback_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static int print_json(const struct invocation *inv, const struct engine_rolled *r, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), paths, at;

	json_set_name(j, "clone", r->clone);
	json_set_name(j, "project", r->project);
	out_json_id(j, "to", r->to);
	out_json_id(j, "saved", r->saved);
	out_json_id(j, "receipt", r->receipt);
	json_set_bool(j, "dry_run", r->dry_run);
	json_set_uint(j, "changed", r->changed);
	paths = json_set_array(j, "paths");
	for (size_t i = 0; i < r->n_paths; i++) {
		at = json_add_object(paths);
		json_set_name(at, "path", r->paths[i].path);
		json_set_text(at, "status", out_status(r->paths[i].status));
	}
	json_set_bool(j, "truncated", r->n_paths < r->changed);
	promotions_set_paths(j, "held", r->held, r->n_held, "rule");
	promotions_set_warnings(j, r->warned, r->n_warned);
	json_set_uint(j, "elapsed_ms", r->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

/* All that lies in one folder of git's own is one line, where the first of them stands. */
static size_t count_folder(const struct engine_rolled *r, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_paths; i++) {
		if (i != at && !out_same_git_folder(r->paths[at].path, r->paths[i].path))
			continue;
		if (i < at)
			return 0;
		n++;
	}
	return n;
}

static void print_paths(const struct invocation *inv, const struct engine_rolled *r)
{
	const char *told = ""; /* in the folder of git's that stands above */
	char count[OUT_COUNT_MAX];

	for (size_t i = 0; i < r->n_paths; i++) {
		const char *path = r->paths[i].path;
		const bool again = out_same_git_folder(path, told);
		const size_t n = again ? 0 : out_git_folder(path) > 0 ? count_folder(r, i) : 1;
		AUTO_FREE char *folder = n > 1 ? strndup(path, out_git_folder(path)) : NULL;

		if (n > 1)
			told = path;
		if (n == 0)
			continue;
		fprintf(inv->out, "%c ", folder ? 'M' : r->paths[i].status);
		out_name(inv->out, folder ? folder : path);
		if (folder)
			fprintf(inv->out, "  (%s paths)", out_count(n, count));
		fputc('\n', inv->out);
	}
}

static void print_human(const struct invocation *inv, const struct engine_rolled *r)
{
	const struct rollback_args *args = inv->args;
	char time[DURATION_TEXT_MAX];

	if (r->dry_run)
		print_paths(inv, r);
	out_id(inv, r->dry_run ? "would go back to " : "back at ", r->to);
	fputs(args->paths.n > 0 ? " in part  " : "  ", inv->out);
	out_plural(inv->out, r->changed, "path", "paths");
	fprintf(inv->out, " %s, in %s\n", r->dry_run ? "would change" : "changed",
		duration_format(r->elapsed_ms, time));
	if (r->dry_run)
		held_print(inv, inv->out, r->held, r->n_held);
	promotions_print_warnings(inv, r->warned, r->n_warned);
	if (r->saved[0] != '\0')
		promotions_print_saved(inv, r->saved, r->clone, r->receipt);
}

static void fill_conflicts(struct json data, const void *ctx)
{
	const struct engine_rolled *r = ctx;
	struct json list = json_set_array(data, "conflicts"), at;

	for (size_t i = 0; i < r->n_conflicts; i++) {
		at = json_add_object(list);
		json_set_name(at, "path", r->conflicts[i].path);
		json_set_text(at, "why", r->conflicts[i].why);
	}
	out_json_id(data, "to", r->to);
	out_json_id(data, "saved", r->saved);
}

static int print_conflicts(struct invocation *inv, const struct engine_rolled *r)
{
	const struct engine_rolled_path *first = &r->conflicts[0];
	struct err err = { 0 };

	if (r->n_conflicts == 1)
		err_set(&err, -ESTALE, "nothing is rolled back: '%s' %s", first->path, first->why);
	else
		err_set(&err, -ESTALE, "nothing is rolled back: '%s' %s, and %zu more like it",
			first->path, first->why, r->n_conflicts - 1);
	cmd_hint_again(inv, &(struct hint_again){ 0 });
	return fail_with(inv, CMD_CONFLICT, &err, fill_conflicts, r);
}

static void fill_held(struct json data, const void *ctx)
{
	const struct engine_rolled *r = ctx;

	promotions_set_paths(data, "held", r->held, r->n_held, "rule");
	out_json_id(data, "to", r->to);
}

static void list_held(const struct invocation *inv, const void *ctx)
{
	const struct engine_rolled *r = ctx;

	held_print(inv, stderr, r->held, r->n_held);
}

static int print_held(struct invocation *inv, const struct engine_rolled *r)
{
	struct err err = { 0 };
	int code;

	held_say("nothing is rolled back: that state is a clone's, and", r->held, r->n_held, &err);
	if (r->n_held > 1)
		inv->print_more = list_held;
	inv->more = r;
	cmd_hint_again(inv, &(struct hint_again){ .option = "allow", .value = r->held[0].path });
	cmd_hint(inv, "promote --rules");
	code = fail_with(inv, CMD_REFUSED, &err, fill_held, r);
	inv->print_more = NULL;
	return code;
}

static void hint(struct invocation *inv, int r)
{
	if (r == -ENOENT)
		cmd_hint(inv, "log --all");
	else if (r == -EACCES)
		cmd_hint_unreadable(inv);
}

/* With --turn the only word is a clone, and the snapshot is found by the labels of its steps. */
static int find_turn(struct invocation *inv, struct engine_rollback_options *options,
		     char id[ENGINE_ID_SIZE], struct err *err)
{
	const struct rollback_args *args = inv->args;
	AUTO_FREE char *here = options->first ? NULL : engine_clone_here(inv->engine);
	int r;

	if (args->turn == 0 && !args->session)
		return 0;
	if (args->turn == 0 || options->second) {
		cmd_hint(inv, "log --agent");
		return err_set(err, -EINVAL,
			       args->turn == 0 ? "--session needs --turn"
					       : "--turn names the snapshot already");
	}
	r = steps_find_turn(inv->engine, options->first ? options->first : here, args->session,
			    args->turn, id, err);
	if (r == -ENOENT)
		cmd_hint(inv, "log --agent");
	if (r < 0)
		return r;
	if (options->first)
		options->second = id;
	else
		options->first = id;
	return 0;
}

/*
 * An agent's call has --yes if it may change the project; else its first word is a clone, even if that
 * has gone meanwhile.  Checks that the user wants before a promotion cannot be left out this way.
 */
static int bound_agent(const struct invocation *inv, struct engine_rollback_options *options,
		       struct err *err)
{
	const struct rollback_args *args = inv->args;
	CLEANUP(strlist_done) struct strlist checks = { 0 };
	int r;

	if (!inv->by_agent)
		return 0;
	options->clone_only = !args->yes;
	r = engine_agent_checks(inv->engine, &checks, err);
	options->own_only = checks.n > 0;
	return r;
}

static int rollback_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_rolled_done) struct engine_rolled rolled = { 0 };
	const struct rollback_args *args = inv->args;
	CLEANUP(typed_done) struct typed allow = { 0 };
	struct engine_rollback_options options = {
		.first = inv->n_words > 0 ? inv->words[0] : NULL,
		.second = inv->n_words > 1 ? inv->words[1] : NULL,
		.no_git = args->no_git,
		.skip_unreadable = args->skip_unreadable,
		.dry_run = args->dry_run,
		.paths = { args->paths.items, args->paths.n },
		.watch = progress_watch(inv->progress),
	};
	char id[ENGINE_ID_SIZE];
	int r = find_turn(inv, &options, id, err);

	if (r < 0)
		return r;
	r = bound_agent(inv, &options, err);
	if (r < 0)
		return r;
	r = typed_read(&allow, &args->allow, err);
	if (r < 0)
		return r;
	options.allow = typed_list(&allow);
	r = engine_rollback(inv->engine, &options, &rolled, err);
	progress_done(inv->progress);
	hint(inv, r);
	if (r == -ECANCELED && options.own_only)
		cmd_hint(inv, "promote");
	if (r < 0)
		return r;
	if (rolled.n_conflicts > 0)
		return print_conflicts(inv, &rolled);
	if (rolled.n_held > 0 && !rolled.dry_run)
		return print_held(inv, &rolled);
	if (inv->json)
		r = print_json(inv, &rolled, err);
	else if (inv->quiet && rolled.saved[0] != '\0')
		fprintf(inv->out, "%s\n", rolled.saved);
	else if (!inv->quiet)
		print_human(inv, &rolled);
	if (r < 0)
		return r;
	return rolled.n_held > 0 ? CMD_REFUSED : CMD_OK;
}

const struct command cmd_rollback = {
	.name = "rollback",
	.group = "Snapshots",
	.summary = "put the project or a clone back to a snapshot",
	.words = "[CLONE] [SNAPSHOT]",
	.max_words = 2,
	.opts = rollback_opts,
	.details =
	    "Without SNAPSHOT: your last snapshot, or a clone's base. Without CLONE: the clone that\n"
	    "holds the current directory, else the project. One word is a clone if one has that\n"
	    "name. The state before is saved first; -q prints its id. A project goes back whole or\n"
	    "not at all: an edit meanwhile is a conflict (5). Ignored files and .git go back too; a\n"
	    "clone's state passes the guard (7) and leaves .git alone.\n",
	.examples = "rollback --dry-run idea --path src/ known-good\nrollback --turn 4\n",
	.run = rollback_run,
};
