#include <errno.h>

#include "base/log.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/conflicts.h"
#include "cli/show/promotions.h"
#include "cli/show/risks.h"
#include "cli/typed.h"
#include "engine/api/rules.h"
#include "engine/api/settings.h"
#include "snapshot/text/guard.h"

struct promote_args {
	struct opt_list check, path, exclude, allow;
	const char *conflict, *markers, *to, *plan;
	const char *profile;
	uint64_t mem, time;
	bool git, dry_run, rules, yes, again, with_hunks, root, skip_unreadable;
};

static const struct opt promote_opts[] = {
	OPT_LIST(0, "check", "COMMAND", struct promote_args, check,
		 "must end with 0, in a sandbox on the merged tree"),
	OPT_STR(0, "profile", "PROFILE", struct promote_args, profile,
		"profile of checks, as for `run`"),
	OPT_SIZE(0, "mem", "SIZE", struct promote_args, mem, "memory of a check"),
	OPT_DURATION(0, "time", "TIME", struct promote_args, time, "time of a check"),
	OPT_LIST(0, "path", "PATTERN", struct promote_args, path,
		 "only paths that match, as in .gitignore"),
	OPT_STR(0, "to", "DIR", struct promote_args, to,
		"where results of --path go, outside of the project"),
	OPT_FLAG(0, "root", struct promote_args, root,
		 "to a whole system, as root: only what --path names"),
	OPT_LIST(0, "exclude", "PATTERN", struct promote_args, exclude,
		 "leave out paths that match"),
	OPT_STR(0, "conflict", "HOW", struct promote_args, conflict,
		"stop (default), ours, theirs or markers"),
	OPT_STR(0, "markers", "STYLE", struct promote_args, markers,
		"merge (default), diff3 or zdiff3"),
	OPT_LIST(0, "allow", "PATH", struct promote_args, allow, "let PATH pass the guard"),
	OPT_FLAG(0, "git", struct promote_args, git,
		 "bring its commits, as branches snap/CLONE/..."),
	OPT_FLAG(0, "skip-unreadable", struct promote_args, skip_unreadable,
		 "skip files that cannot be read, and list them"),
	OPT_FLAG(0, "continue", struct promote_args, again,
		 "repeat a promotion that met conflicts, with its options"),
	OPT_FLAG(0, "with-hunks", struct promote_args, with_hunks,
		 "with --json: the texts of conflicts, too"),
	OPT_FLAG('n', "dry-run", struct promote_args, dry_run, "only say what would change"),
	OPT_STR(0, "plan", "DIGEST", struct promote_args, plan,
		"only if a dry run with --json had this `plan`"),
	OPT_FLAG(0, "rules", struct promote_args, rules,
		 "list what the guard holds and warns of, and why"),
	OPT_FLAG('y', "yes", struct promote_args, yes, "no effect, for scripts: nothing is asked"),
	OPT_END,
};
_Static_assert(sizeof(struct promote_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

/* --- rules ------------------------------------------------------------------------------ */

static void print_patterns(FILE *out, const char *patterns)
{
	for (const char *p = patterns; p && *p; p++)
		fputc(*p == '\n' ? ' ' : *p, out);
}

static void set_rules(struct json array, const struct guard_rule *rules, size_t n)
{
	struct json at;

	for (size_t i = 0; i < n; i++) {
		at = json_add_object(array);
		json_set_text(at, "name", rules[i].name);
		json_set_text(at, "level", guard_level_name(rules[i].level));
		json_set_text(at, "patterns", rules[i].patterns);
		json_set_text(at, "why", rules[i].why);
	}
}

static void print_rules(const struct invocation *inv, const struct guard_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fprintf(inv->out, "%-4s  %s%s%s: ", guard_level_name(rules[i].level),
			out_style(inv, OUT_BOLD), rules[i].name, out_style(inv, OUT_PLAIN));
		out_text(inv->out, rules[i].why, "");
		if (!rules[i].patterns)
			continue;
		fprintf(inv->out, "    %s", out_style(inv, OUT_DIM));
		print_patterns(inv->out, rules[i].patterns);
		fprintf(inv->out, "%s\n", out_style(inv, OUT_PLAIN));
	}
}

static int list_rules(const struct invocation *inv, struct err *err)
{
	CLEANUP(engine_rules_done) struct engine_rules more = { 0 };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json array;
	size_t n;
	const struct guard_rule *rules = guard_rules(&n);
	const struct promote_args *args = inv->args;
	size_t n_system;
	const struct guard_rule *system = guard_system_rules(&n_system);
	int r = engine_rules(inv->engine, &more, err);

	if (!args->root)
		n_system = 0;

	if (r < 0)
		return r;
	if (inv->json) {
		array = json_set_array(out_json_begin(inv, &doc), "rules");
		set_rules(array, rules, n);
		set_rules(array, system, n_system);
		set_rules(array, more.list, more.n);
		return json_print(&doc, inv->out, err);
	}
	print_rules(inv, rules, n);
	print_rules(inv, system, n_system);
	print_rules(inv, more.list, more.n);
	return CMD_OK;
}

/* --- the command ------------------------------------------------------------------------ */

/* What the user wants to be checked comes first, then what the agent itself asked for. */
static int join_checks(struct invocation *inv, struct strlist *all,
		       struct engine_promote_options *options, struct err *err)
{
	int r = inv->by_agent ? engine_agent_checks(inv->engine, all, err) : 0;

	if (r < 0 || all->n == 0)
		return r;
	for (size_t i = 0; i < options->checks.n; i++)
		if (strlist_add(all, options->checks.items[i]) < 0)
			return err_nomem(err);
	options->checks =
	    (struct engine_list){ .items = (const char *const *)all->list, .n = all->n };
	return 0;
}

static int check_root(const struct promote_args *args, struct err *err)
{
	if (!args->root)
		return 0;
	if (args->path.n == 0 && !args->again)
		return err_set(err, -EINVAL,
			       "option '--root' needs '--path': only what is named is promoted");
	if (args->to || args->git)
		return err_set(err, -EINVAL, "options '--root' and '--%s' exclude each other",
			       args->to ? "to" : "git");
	return 0;
}

/* Of all that the clone changed, or of what has landed; scripts ask `policy explain`. */
static int print_risk(const struct invocation *inv, const struct engine_promotion *p, bool landed,
		      struct err *err)
{
	CLEANUP(engine_facts_done) struct engine_facts facts = { 0 };
	const struct engine_facts_options options = { .clone = p->clone,
						      .promotion = p,
						      .landed = landed };
	int r = engine_facts(inv->engine, &options, &facts, err);

	if (r >= 0 && p->dry_run)
		risks_print(inv, &facts);
	else if (r >= 0)
		risks_print_line(inv, &facts);
	return r;
}

/* What landed or (of the whole clone) would land: that is what a person should look at. */
static int print_result(struct invocation *inv, const struct engine_promotion *p, struct err *err)
{
	const struct promote_args *args = inv->args;
	const bool landed = p->before[0] != '\0' && p->after[0] != '\0';
	const bool whole = args->path.n + args->exclude.n == 0;
	struct err problem = { 0 };
	int r = promotions_tell(inv, p, err), x;

	if (r < 0 || inv->json || inv->quiet || p->to || args->root ||
	    !(landed || (whole && p->dry_run && p->changed > 0)))
		return r;
	x = print_risk(inv, p, landed, &problem);
	/* What has landed has landed. */
	if (x < 0 && landed)
		log_warn("cannot rate the risk of the change: %s, continuing", problem.msg);
	else if (x < 0)
		return err_set(err, x, "%s", problem.msg);
	return r;
}

static void set_limits(const struct promote_args *args, struct engine_run_limits *limits)
{
	engine_run_limits_init(limits);
	limits->mem = args->mem;
	limits->time_ms = args->time;
}

static void hint(struct invocation *inv, int r, const struct err *err)
{
	const struct promote_args *args = inv->args;

	if (!args->skip_unreadable)
		cmd_hint_if_unreadable(inv, r, err);
	if (r == -ENOENT && args->again)
		cmd_hint_again(inv, &(struct hint_again){ .without = "continue" });
	/* Or what --to names is not there. */
	if (r == -ENOENT && !(inv->n_words > 0 && engine_has_clone(inv->engine, inv->words[0])))
		cmd_hint(inv, "list");
	promotions_hint_lost(inv, r);
}

static int promote_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	const struct promote_args *args = inv->args;
	CLEANUP(typed_done) struct typed allow = { 0 };
	CLEANUP(strlist_done) struct strlist checks = { 0 };
	struct engine_run_limits limits;
	int sig = 0;
	struct engine_promote_options options = {
		.clone = inv->n_words > 0 ? inv->words[0] : NULL,
		.checks = cmd_values(&args->check),
		.paths = cmd_values(&args->path),
		.excludes = cmd_values(&args->exclude),
		.to = args->to,
		.root = args->root,
		.plan = args->plan,
		.skip_unreadable = args->skip_unreadable,
		.git = args->git,
		.dry_run = args->dry_run,
		.again = args->again,
		.with_hunks = args->with_hunks,
		.watch = progress_watch(inv->progress),
		.profile = args->profile,
		.limits = &limits,
		.checking = promotions_on_check,
		.checking_ctx = inv,
		.ret_signal = &sig,
	};
	int r;

	if (args->rules)
		return list_rules(inv, err);
	r = check_root(args, err);
	if (r >= 0)
		r = join_checks(inv, &checks, &options, err);
	if (r < 0)
		return r;
	set_limits(args, &limits);
	r = typed_read(&allow, &args->allow, err);
	if (r < 0)
		return r;
	options.allow = typed_list(&allow);
	r = conflicts_read_ways(args->conflict, args->markers, &options.on_conflict, &options.style,
				err);
	if (r < 0)
		return r;
	r = engine_promote(inv->engine, &options, &p, err);
	progress_done(inv->progress);
	hint(inv, r, err);
	if (r == -EINTR)
		return fail_interrupted(inv, sig, err);
	return r < 0 ? r : print_result(inv, &p, err);
}

static void promote_preset(void *to)
{
	struct promote_args *args = to;

	args->mem = args->time = ENGINE_UNSAID;
}

const struct command cmd_promote = {
	.name = "promote",
	.group = "Changes",
	.summary = "let the project take a clone's changes",
	.words = "[CLONE]",
	.max_words = 1,
	.opts = promote_opts,
	.preset = promote_preset,
	.details =
	    "Merges what the clone changed since its base with the project as it is now. All of\n"
	    "it lands or nothing, and no edit is overwritten. A conflict (5), a path that the\n"
	    "guard holds (7) or a failed check (8) changes nothing; -n ends with the same code.\n"
	    "The project's .git stays as it is. `undo` takes a promotion back. `resolve` settles\n"
	    "conflicts; --continue then promotes with the same options. With --to, each --path of\n"
	    "the clone arrives in DIR under its last name; with --root, in the system itself.\n",
	.examples = "promote --dry-run idea\npromote --check 'make test' idea\n"
		    "promote --path src/ --allow .github/workflows/ci.yml idea\n"
		    "promote --path build/app --to ~/bin idea\n",
	.run = promote_run,
};
