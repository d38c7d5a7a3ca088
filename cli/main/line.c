/*
 * The global options may stand before the command or after it, so a command's own options are
 * parsed together with them: in one table that fills one block, globals first, then the command's
 * struct.
 */
#include "cli/main/line.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/fail.h"
#include "cli/globals.h"
#include "cli/help.h"
#include "cli/moved.h"
#include "cli/progress.h"
#include "engine/api/projects.h"
#include "engine/api/remote.h"

/* One a line, however many there are. */
/* clang-format off */
static const struct command *const commands[] = {
	&cmd_clone,
	&cmd_list,
	&cmd_status,
	&cmd_rm,
	&cmd_write,
	&cmd_edit,
	&cmd_init,
	&cmd_snapshot,
	&cmd_log,
	&cmd_show,
	&cmd_blame,
	&cmd_why,
	&cmd_rollback,
	&cmd_tag,
	&cmd_import,
	&cmd_export,
	&cmd_image,
	&cmd_push,
	&cmd_pull,
	&cmd_fetch,
	&cmd_remote,
	&cmd_serve,
	&cmd_diff,
	&cmd_compare,
	&cmd_promote,
	&cmd_undo,
	&cmd_rebase,
	&cmd_resolve,
	&cmd_ship,
	&cmd_pipeline,
	&cmd_approve,
	&cmd_reject,
	&cmd_policy,
	&cmd_watch,
	&cmd_run,
	&cmd_try,
	&cmd_bisect,
	&cmd_tasks,
	&cmd_replay,
	&cmd_experiment,
	&cmd_allow,
	&cmd_artifact,
	&cmd_runs,
	&cmd_logs,
	&cmd_ps,
	&cmd_top,
	&cmd_wait,
	&cmd_attach,
	&cmd_cancel,
	&cmd_answer,
	&cmd_worker,
	&cmd_stats,
	&cmd_events,
	&cmd_projects,
	&cmd_check,
	&cmd_audit,
	&cmd_metrics,
	&cmd_gc,
	&cmd_mount,
	&cmd_umount,
	&cmd_fsmonitor,
	&cmd_start,
	&cmd_stop,
	&cmd_profile,
	&cmd_help,
	&cmd_completion,
	&cmd_doctor,
	&cmd_mcp,
	&cmd_ui,
	&cmd_agents,
	&cmd_version,
	NULL,
};
/* clang-format on */

#define OPTS_MAX 64

struct args {
	struct global_args global;
	_Alignas(max_align_t) unsigned char own[CMD_ARGS_MAX];
};

static int choose_color(struct invocation *inv, const char *when, struct err *err)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (when && strcmp(when, "always") == 0)
		inv->color = true;
	else if (when && strcmp(when, "never") == 0)
		inv->color = false;
	else if (!when || strcmp(when, "auto") == 0)
		inv->color = isatty(fileno(inv->out)) && !(no_color && *no_color != '\0') && term &&
			     *term != '\0' && strcmp(term, "dumb") != 0;
	else
		return err_set(err, -EINVAL,
			       "option '--color': '%s' is not one of auto, always, never", when);
	return 0;
}

/* --- parsing ---------------------------------------------------------------------------- */

/* One table of both, a command's own first: where both have a name, the command's counts. */
static void join_opts(const struct opt *own, struct opt table[OPTS_MAX])
{
	size_t n = 0;

	for (; own && own->kind != OPT_KIND_END; own++) {
		assert(n < OPTS_MAX - 1);
		table[n] = *own;
		table[n++].offset += offsetof(struct args, own);
	}
	OPT_FOREACH(o, global_opts)
	{
		assert(n < OPTS_MAX - 1);
		table[n++] = *o;
	}
	table[n] = (struct opt)OPT_END;
}

static int take_globals(struct invocation *inv, const struct global_args *g, struct err *err)
{
	inv->json |= g->json;
	inv->quiet = g->quiet;
	inv->dir = g->dir;
	inv->store = g->store;
	if (g->quiet)
		log_set_level(LOG_ERROR);
	else if (g->verbose > 0)
		log_set_level(LOG_DEBUG);
	return choose_color(inv, g->color, err);
}

/* A caller that asks for JSON gets JSON, even if parsing ended before --json. */
static bool asks_for_json(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

/* Read what follows a first word as if that named a clone, for the answer alone. */
static void look_ahead(const struct opt *table, int argc, char **argv, struct bare *ret,
		       struct opt_words *words)
{
	struct args unused = { 0 };
	AUTO_FREE char **copy = calloc((size_t)argc + 1, sizeof(*copy));

	*words = (struct opt_words){ 0 };
	*ret = (struct bare){ .is = true };
	if (!copy) {
		(void)err_nomem(&ret->wrong);
		return;
	}
	for (int i = 0; i < argc; i++)
		copy[i] = argv[i];
	if (opt_parse(table, OPT_STOP_AT_WORD, argc, copy, &unused, words, &ret->wrong) >= 0)
		ret->n_rest = words->n;
	ret->json = unused.global.json;
	opt_done(table, &unused);
}

/*
 * With somebody else's command nothing behind its first word is ours.  A word is a clone's name if
 * nothing but our options stands between it and "--"; else whoever knows the clones decides.
 */
static int parse_command(struct invocation *inv, const struct opt *table, int argc, char **argv,
			 struct args *args, struct opt_words *ret, struct err *err)
{
	struct opt_words more;
	int r = opt_parse(table, OPT_STOP_AT_WORD, argc, argv, args, ret, err);

	if (r < 0 || ret->dashes || ret->n == 0)
		return r;
	look_ahead(table, ret->n - 1, argv + 1, &inv->bare, &more);
	ret->n_before = 0;
	if (!more.dashes)
		return 0;
	inv->bare.is = false;
	r = opt_parse(table, OPT_STOP_AT_WORD, ret->n - 1, argv + 1, args, &more, err);
	ret->n = 1 + more.n;
	ret->n_before = 1;
	return r;
}

static int count_words(const struct invocation *inv, struct err *err)
{
	const struct command *c = inv->command;
	const int n = c->takes_rest ? inv->n_before : inv->n_words;

	if (n < c->min_words)
		return err_set(err, -EINVAL, "'%s' needs %s", c->name, c->words);
	if (n > c->max_words && c->max_words == 0)
		return err_set(err, -EINVAL, "'%s' takes options only, not '%s'", c->name,
			       inv->words[0]);
	if (n > c->max_words)
		return err_set(err, -EINVAL, "'%s' has one word too many: '%s'", c->name,
			       inv->words[c->max_words]);
	return 0;
}

/* --- running ---------------------------------------------------------------------------- */

static int run_command(struct invocation *inv, struct err *err)
{
	const struct engine_options options = { .dir = inv->dir, .store = inv->store };
	CLEANUP(engine_close_p) struct engine *engine = NULL;
	CLEANUP(progress_done) struct progress progress;
	int r;

	progress_init(&progress, stderr, !inv->quiet);
	if (!inv->command->no_engine) {
		r = engine_open(&options, &engine, err);
		if (r < 0)
			return r;
		engine_fetch_resume(engine);
	}
	inv->engine = engine;
	inv->progress = &progress;
	r = inv->command->run(inv, err);
	if (r == -ENXIO && inv->adopted) {
		*err = (struct err){ 0 };
		while (inv->n_hints > 0)
			free(inv->hints[--inv->n_hints]);
		r = inv->command->run(inv, err);
	} else if (r == -ENXIO && !inv->ran) {
		r = moved_tell(inv, r, err);
	}
	if (engine && (r == -ENXIO || (r == -ECANCELED && strstr(err->msg, ENGINE_ONLY_IF_NAMED))))
		cmd_hint_init(inv);
	inv->engine = NULL;
	inv->progress = NULL;
	return r;
}

/* Is the sentence about what was typed?  Then the command's help says what can be. */
static bool is_of_line(const struct invocation *inv, const char *text)
{
	const char *name = inv->command->name;
	const size_t len = strlen(name);

	if (*text == '\'')
		text++;
	return strncmp(text, "option", 6) == 0 || strncmp(text, "--", 2) == 0 ||
	       (strncmp(text, name, len) == 0 && (text[len] == '\'' || text[len] == ' '));
}

/* The command's own arguments, argv[0] being its name. */
static int parse_and_run(struct invocation *inv, int argc, char **argv, struct args *args,
			 struct err *err)
{
	struct opt table[OPTS_MAX];
	struct opt_words words;
	bool asked;
	int r;

	asked = asks_for_json(argc, argv);
	/* Parsing moves them about; without memory there is a hint less. */
	inv->typed = calloc((size_t)argc + 1, sizeof(*inv->typed));
	for (int i = 1; inv->typed && i < argc; i++)
		inv->typed[i - 1] = argv[i];
	join_opts(inv->command->opts, table);
	if (inv->command->preset)
		inv->command->preset(args->own);
	if (inv->command->takes_command)
		r = parse_command(inv, table, argc - 1, argv + 1, args, &words, err);
	else
		r = opt_parse(table, OPT_PERMUTE, argc - 1, argv + 1, args, &words, err);
	/* The options parsed so far decide how the failure is printed. */
	if (take_globals(inv, &args->global, r < 0 ? NULL : err) < 0 && r >= 0)
		r = -EINVAL;
	if (r >= 0 && args->global.help) {
		r = help_print(inv, inv->command, err);
		opt_done(table, args);
		return r;
	}
	inv->words = argv + 1;
	inv->n_words = r < 0 ? 0 : words.n;
	inv->n_before = r < 0 ? 0 : words.n_before;
	inv->args = args->own;
	if (r >= 0)
		r = count_words(inv, err);
	if (r < 0) {
		inv->json |= asked;
		cmd_hint(inv, "help %s", inv->command->name);
	} else {
		r = run_command(inv, err);
		if (r == -EINVAL && inv->n_hints == 0 && is_of_line(inv, err->msg))
			cmd_hint(inv, "help %s", inv->command->name);
	}
	opt_done(table, args);
	return r;
}

static int run(struct invocation *inv, int argc, char **argv, struct args *args, struct err *err)
{
	const bool asked = asks_for_json(argc, argv);
	struct opt_words words;
	int r = opt_parse(global_opts, OPT_STOP_AT_WORD, argc, argv, args, &words, err);

	if (take_globals(inv, &args->global, r < 0 ? NULL : err) < 0 && r >= 0)
		r = -EINVAL;
	if (r >= 0 && words.n == 0 && !args->global.help && !args->global.version)
		r = err_set(err, -EINVAL, "no command given");
	if (r < 0) {
		inv->json |= asked;
		cmd_hint(inv, "help");
		return r;
	}
	if (words.n == 0 && args->global.help)
		return help_print(inv, NULL, err);
	if (words.n == 0) {
		inv->command = &cmd_version;
		return run_command(inv, err);
	}
	inv->command = command_find(inv->commands, argv[0], err);
	if (!inv->command) {
		inv->json |= asked;
		cmd_hint(inv, "help");
		return -EINVAL;
	}
	return parse_and_run(inv, words.n, argv, args, err);
}

int line_run(struct invocation *inv, int argc, char **argv, struct err *err)
{
	struct args args = { 0 };
	int status;

	inv->commands = commands;
	inv->run_line = line_run;
	status = run(inv, argc, argv, &args, err);
	if (status < 0 && !ferror(inv->out))
		status = fail_report(inv, status, err);
	for (size_t i = 0; i < inv->n_hints; i++)
		free(inv->hints[i]);
	inv->n_hints = 0;
	free(inv->typed);
	inv->typed = NULL;
	return status;
}
