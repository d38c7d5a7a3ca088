#include "cli/cmd/experiment-plan.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/vec.h"
#include "cli/cmd/run-words.h"
#include "engine/api/matrix.h"

const struct opt experiment_plan_opts[] = {
	OPT_STR('n', "name", "NAME", struct experiment_args, name,
		"name of the experiment (default: two words)"),
	OPT_LIST('a', "arm", "NAME=COMMAND", struct experiment_args, arm,
		 "a command to try, on its own clone"),
	OPT_LIST(0, "arm-env", "ARM:NAME=VALUE", struct experiment_args, arm_env,
		 "set a variable for one arm"),
	OPT_LIST(0, "arm-profile", "ARM:PROFILE", struct experiment_args, arm_profile,
		 "give one arm another profile"),
	OPT_LIST(0, "arm-base", "ARM:STATE", struct experiment_args, arm_base,
		 "let one arm start from another snapshot or clone"),
	OPT_LIST(0, "arm-after", "ARM:ARM", struct experiment_args, arm_after,
		 "start the first arm from the result of the second, once that has passed"),
	OPT_LIST(0, "arm-file", "NAME=FILE", struct experiment_args, arm_file,
		 "try the arms of FILE inside arm NAME; the best one is its result"),
	OPT_LIST(0, "matrix", "NAME=VALUE,...", struct experiment_args, matrix,
		 "run each arm with each value of the variable NAME"),
	OPT_LIST(0, "exclude", "NAME=VALUE,...", struct experiment_args, exclude,
		 "leave out combinations of --matrix that have all of these"),
	OPT_LIST(0, "check", "COMMAND", struct experiment_args, check,
		 "must exit with 0 on the result of an arm"),
	OPT_STR(
	    0, "score", "HOW", struct experiment_args, score,
	    "a command that prints a number; time, cpu or mem, of the checks or as time:COMMAND; "
	    "lines; size:FILE"),
	OPT_FLAG(0, "min", struct experiment_args, min, "the lowest score is best (default)"),
	OPT_FLAG(0, "max", struct experiment_args, max, "the highest score is best"),
	OPT_U64(0, "rounds", "N", struct experiment_args, rounds,
		"measure each score N times (time and cpu: 5; else 1)"),
	OPT_U64(0, "repeat", "N", struct experiment_args, repeat,
		"run each arm N times, to see how often it passes"),
	OPT_U64('j', "jobs", "N", struct experiment_args, jobs,
		"arms at once (default: the number of processors)"),
	OPT_FLAG(0, "first-pass", struct experiment_args, first_pass,
		 "the first arm that passes wins; the others are stopped"),
	OPT_U64(0, "stop-after", "N", struct experiment_args, stop_after,
		"stop when N arms have passed"),
	OPT_FLAG(0, "stop-losers", struct experiment_args, stop_losers,
		 "stop checking and measuring an arm that another has beaten"),
	OPT_FLAG(0, "promote-best", struct experiment_args, promote_best,
		 "promote the winner; a tie promotes nothing (exit code 16)"),
	OPT_FLAG(0, "promote-all-compatible", struct experiment_args, promote_compatible,
		 "promote all arms that pass, one after the other, except conflicting ones"),
	OPT_LIST(0, "allow", "PATH", struct experiment_args, allow,
		 "let PATH pass the guard in a promotion"),
	OPT_STR(0, "keep", "best|passed|all|none", struct experiment_args, keep,
		"which clones stay (default: best)"),
	OPT_STR(0, "from", "STATE", struct experiment_args, from,
		"start from a snapshot or clone, not from the project"),
	OPT_LIST(0, "within", "PATTERN", struct experiment_args, within,
		 "warn of changes elsewhere, as in .gitignore"),
	OPT_SIZE(0, "mem", "SIZE", struct experiment_args, mem, "memory of an arm"),
	OPT_U64(0, "pids", "N", struct experiment_args, pids, "processes of an arm"),
	OPT_DURATION(0, "time", "TIME", struct experiment_args, time, "time of each command"),
	OPT_SIZE(0, "disk", "SIZE", struct experiment_args, disk, "growth of an arm's clone"),
	OPT_SIZE(0, "all-mem", "SIZE", struct experiment_args, all_mem,
		 "memory of all arms at once"),
	OPT_DURATION(0, "all-time", "TIME", struct experiment_args, all_time,
		     "time of the whole experiment"),
	OPT_SIZE(0, "all-disk", "SIZE", struct experiment_args, all_disk,
		 "growth of all clones together"),
	OPT_STR(0, "profile", "PROFILE", struct experiment_args, profile,
		"profile of all runs, as for `run`"),
	OPT_STR(0, "net", "none|loopback|host", struct experiment_args, net,
		"or HOST:PORT,...: the network of arms"),
	OPT_LIST('e', "env", "NAME=VALUE", struct experiment_args, env, "set a variable"),
	OPT_LIST(0, "pass-env", "NAME", struct experiment_args, pass_env,
		 "pass on a variable of this environment"),
	OPT_LIST(0, "ro", "PATH", struct experiment_args, ro,
		 "show arms PATH of the host, read-only"),
	OPT_LIST(0, "allow-missing", "WALL", struct experiment_args, allow_missing,
		 "run without WALL if this machine lacks it, as for `run`"),
	OPT_STR(
	    0, "on", "PLACE", struct experiment_args, on,
	    "ssh:HOST, slurm[:PARTITION] or nats://HOST[/NAME]: commands of arms run there, all else here"),
	OPT_STR(
	    0, "remote", "REMOTE", struct experiment_args, remote,
	    "with --on: states travel through it (default: the only one; ssh: a directory there)"),
	OPT_LIST(0, "label", "LABEL", struct experiment_args, label,
		 "with --on: only workers that have it"),
	OPT_STR(0, "creds", "FILE", struct experiment_args, creds,
		"with --on: credentials of NATS"),
	OPT_FLAG(0, "insecure", struct experiment_args, insecure,
		 "with --on: a server elsewhere may go without credentials or TLS"),
	OPT_STR(0, "sign", "KEY", struct experiment_args, sign,
		"with --on: SSH key that signs the state"),
	OPT_FLAG(0, "require-signature", struct experiment_args, signed_only,
		 "with --on: refuse results that nobody signed"),
	OPT_STR(0, "allowed-signers", "FILE", struct experiment_args, signers,
		"with --on: allowed signers (default: config.yaml)"),
	OPT_DURATION(0, "deadline", "TIME", struct experiment_args, deadline,
		     "with --on: begin no arm there later than this after the start"),
	OPT_STR(
	    0, "html", "FILE", struct experiment_args, html,
	    "write a page with arms, scores and diffs to FILE (- is stdout); also of show, wait"),
	OPT_FLAG(0, "steps", struct experiment_args, steps,
		 "with --json: a line for each step before the result"),
	OPT_FLAG('d', "detach", struct experiment_args, detach,
		 "return when the first arm runs; 'wait' has the result"),
	OPT_DURATION(0, "timeout", "TIME", struct experiment_args, timeout,
		     "wait: give up after this (exit code 124)"),
	OPT_STR(0, "plan", "DIGEST", struct experiment_args, plan,
		"promote: only if a dry run of its clone had this `plan`"),
	OPT_FLAG(0, "all", struct experiment_args, all, "list: of every project"),
	OPT_END,
};
_Static_assert(sizeof(struct experiment_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

void experiment_plan_preset(void *to)
{
	struct experiment_args *args = to;

	args->mem = args->pids = args->time = args->disk = args->timeout = ENGINE_UNSAID;
	args->all_mem = args->all_time = args->all_disk = args->jobs = ENGINE_UNSAID;
	args->rounds = args->repeat = args->stop_after = ENGINE_UNSAID;
}

/* --- what was asked for -------------------------------------------------------------------- */

static int copy_list(const struct opt_list *from, char ***ret, size_t *ret_n, struct err *err)
{
	for (size_t i = 0; i < from->n; i++) {
		if (!VEC_ONE_MORE(*ret, *ret_n))
			return err_nomem(err);
		(*ret)[*ret_n] = strdup(from->items[i]);
		if (!(*ret)[*ret_n])
			return err_nomem(err);
		(*ret_n)++;
	}
	return 0;
}

static int copy_text(const char *from, char **ret, struct err *err)
{
	if (!from)
		return 0;
	free(*ret);
	*ret = strdup(from);
	return *ret ? 0 : err_nomem(err);
}

/* A number that was given. */
static void take(uint64_t from, uint64_t *to)
{
	if (from != ENGINE_UNSAID)
		*to = from;
}

static int read_keep(const char *text, enum engine_arms_kept *ret, struct err *err)
{
	static const char *const names[] = {
		[ENGINE_KEEP_BEST] = "best",
		[ENGINE_KEEP_PASSED] = "passed",
		[ENGINE_KEEP_ALL] = "all",
		[ENGINE_KEEP_NONE] = "none",
	};

	if (!text)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum engine_arms_kept)i;
			return 0;
		}
	return err_set(err, -EINVAL, "option '--keep': '%s' is not one of best, passed, all, none",
		       text);
}

static int check_args(const struct invocation *inv, const char *file, struct err *err)
{
	const struct experiment_args *a = inv->args;

	if (a->arm.n + a->arm_file.n == 0 && !file)
		return err_set(
		    err, -EINVAL,
		    "an experiment needs an arm: --arm NAME=COMMAND, or the name of a file");
	if (a->min && a->max)
		return err_set(err, -EINVAL, "options '--min' and '--max' exclude each other");
	if (a->promote_best && a->promote_compatible)
		return err_set(err, -EINVAL,
			       "options '--promote-best' and "
			       "'--promote-all-compatible' exclude each other");
	if (a->first_pass && a->stop_after != ENGINE_UNSAID)
		return err_set(err, -EINVAL,
			       "options '--first-pass' and '--stop-after' exclude each other");
	if (a->repeat == 0 || (a->repeat > ENGINE_ARMS_MAX && a->repeat != ENGINE_UNSAID))
		return err_set(err, -EINVAL, "option '--repeat' takes 1 to %d", ENGINE_ARMS_MAX);
	if (a->rounds == 0 || (a->rounds > ENGINE_ROUNDS_MAX && a->rounds != ENGINE_UNSAID))
		return err_set(err, -EINVAL, "option '--rounds' takes 1 to %d", ENGINE_ROUNDS_MAX);
	if (a->exclude.n > 0 && a->matrix.n == 0)
		return err_set(err, -EINVAL, "option '--exclude' needs '--matrix'");
	if (a->steps && !inv->json)
		return err_set(err, -EINVAL, "option '--steps' needs '--json'");
	if (a->steps && a->detach)
		return err_set(err, -EINVAL, "options '--steps' and '--detach' exclude each other");
	if (a->html && a->detach)
		return err_set(err, -EINVAL,
			       "options '--html' and '--detach' exclude each other: `experiment "
			       "wait --html` makes the page");
	return 0;
}

/* An option that means nothing without --on, or NULL. */
static const char *only_on(const struct experiment_args *a)
{
	return a->remote        ? "remote"
	       : a->creds       ? "creds"
	       : a->insecure    ? "insecure"
	       : a->label.n > 0 ? "label"
	       : a->signed_only ? "require-signature"
	       : a->signers     ? "allowed-signers"
	       : a->sign        ? "sign"
	       : a->deadline    ? "deadline"
				: NULL;
}

/* Of what file and options say together. */
static int check_plan(const struct experiment_args *a, const struct engine_experiment *x,
		      struct err *err)
{
	if (x->stop_losers && (x->score == ENGINE_SCORE_NONE || x->repeat > 1 ||
			       x->promote == ENGINE_PROMOTE_COMPATIBLE))
		return err_set(err, -EINVAL,
			       "option '--stop-losers' needs '--score', and goes neither with "
			       "'--repeat' nor with '--promote-all-compatible'");
	if (!x->on.queue && only_on(a))
		return err_set(err, -EINVAL, "option '--%s' needs '--on'", only_on(a));
	if (x->repeat > 1 && x->promote != ENGINE_PROMOTE_NO_ARM)
		return err_set(err, -EINVAL, "repetitions are not promoted: leave '--repeat' out");
	if ((a->min || a->max) && x->score == ENGINE_SCORE_NONE)
		return err_set(err, -EINVAL, "option '--%s' needs '--score'",
			       a->max ? "max" : "min");
	return 0;
}

/* --- arms ---------------------------------------------------------------------------------- */

static int multiply(const struct experiment_args *a, struct engine_experiment *x, struct err *err)
{
	CLEANUP(engine_matrix_done) struct engine_matrix m = { 0 };
	int r = 0;

	if (a->matrix.n == 0)
		return 0;
	for (size_t i = 0; i < a->matrix.n && r >= 0; i++)
		r = engine_matrix_add(&m, a->matrix.items[i], err);
	for (size_t i = 0; i < a->exclude.n && r >= 0; i++)
		r = engine_matrix_exclude(&m, a->exclude.items[i], err);
	return r < 0 ? r : engine_matrix_apply(&m, x, err);
}

static int read_arms(const struct experiment_args *a, struct engine_experiment *x, struct err *err)
{
	const struct {
		const struct opt_list *list;
		enum engine_arm_option option;
	} settings[] = {
		{ &a->arm_env, ENGINE_ARM_ENV },
		{ &a->arm_profile, ENGINE_ARM_PROFILE },
		{ &a->arm_base, ENGINE_ARM_BASE },
		{ &a->arm_after, ENGINE_ARM_AFTER },
	};
	int r = 0;

	for (size_t i = 0; i < a->arm.n && r >= 0; i++)
		r = engine_experiment_add(x, a->arm.items[i], err);
	for (size_t i = 0; i < a->arm_file.n && r >= 0; i++)
		r = engine_experiment_add_inner(x, a->arm_file.items[i], err);
	for (size_t k = 0; k < ARRAY_LEN(settings); k++)
		for (size_t i = 0; i < settings[k].list->n && r >= 0; i++)
			r = engine_experiment_set(x, settings[k].option, settings[k].list->items[i],
						  err);
	return r < 0 ? r : multiply(a, x, err);
}

/* --- the rest ------------------------------------------------------------------------------ */

static int read_lists(const struct experiment_args *a, struct engine_experiment *x, struct err *err)
{
	const struct {
		const struct opt_list *from;
		char ***to;
		size_t *n;
	} lists[] = {
		{ &a->check, &x->checks, &x->n_checks },
		{ &a->env, &x->env, &x->n_env },
		{ &a->pass_env, &x->pass_env, &x->n_pass_env },
		{ &a->ro, &x->ro, &x->n_ro },
		{ &a->within, &x->within, &x->n_within },
		{ &a->label, &x->on.labels, &x->on.n_labels },
		{ &a->allow_missing, &x->allow_missing, &x->n_allow_missing },
		{ &a->allow, &x->allow, &x->n_allow },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(lists) && r >= 0; i++)
		r = copy_list(lists[i].from, lists[i].to, lists[i].n, err);
	return r;
}

/* The path of a file, from wherever it will be read. */
static int copy_file(const char *from, char **to, struct err *err)
{
	char here[PATH_MAX];
	AUTO_FREE char *path = NULL;

	if (!from)
		return 0;
	if (!getcwd(here, sizeof(here)))
		return err_sys(err, "the current directory");
	path = path_clean(here, from);
	return path ? copy_text(path, to, err) : err_nomem(err);
}

static int read_texts(const struct experiment_args *a, struct engine_experiment *x, struct err *err)
{
	const struct {
		const char *from;
		char **to;
	} texts[] = {
		{ a->name, &x->name },       { a->from, &x->from },
		{ a->profile, &x->profile }, { a->net, &x->net },
		{ a->on, &x->on.queue },     { a->remote, &x->on.remote },
	}, files[] = {
		{ a->creds, &x->on.creds },
		{ a->signers, &x->on.signers },
		{ a->sign, &x->on.sign },
	};
	int r = a->score ? engine_experiment_score(x, a->score, err) : 0;

	for (size_t i = 0; i < ARRAY_LEN(texts) && r >= 0; i++)
		r = copy_text(texts[i].from, texts[i].to, err);
	for (size_t i = 0; i < ARRAY_LEN(files) && r >= 0; i++)
		r = copy_file(files[i].from, files[i].to, err);
	return r < 0 ? r : read_keep(a->keep, &x->keep, err);
}

static void read_numbers(const struct experiment_args *a, struct engine_experiment *x)
{
	const bool timed = x->score == ENGINE_SCORE_TIME || x->score == ENGINE_SCORE_CPU;

	if (a->min || a->max)
		x->higher = a->max;
	take(a->repeat, &x->repeat);
	take(a->rounds, &x->rounds);
	if (x->rounds == 0)
		x->rounds = timed ? 5 : 1;
	take(a->jobs, &x->jobs);
	take(a->first_pass ? 1 : a->stop_after, &x->stop_after);
	x->stop_losers |= a->stop_losers;
	x->on.insecure |= a->insecure;
	x->on.signed_only |= a->signed_only;
	x->on.deadline_ms = a->deadline;
	take(a->mem, &x->limits.mem);
	take(a->pids, &x->limits.pids);
	take(a->time, &x->limits.time_ms);
	take(a->disk, &x->limits.disk);
	take(a->all_mem, &x->all_mem);
	take(a->all_time, &x->all_time_ms);
	take(a->all_disk, &x->all_disk);
	if (a->promote_best || a->promote_compatible)
		x->promote = a->promote_best ? ENGINE_PROMOTE_BEST : ENGINE_PROMOTE_COMPATIBLE;
}

int experiment_plan_read(const struct invocation *inv, const char *file,
			 struct engine_experiment *x, struct err *err)
{
	const struct experiment_args *a = inv->args;
	int r = check_args(inv, file, err);

	engine_experiment_init(x);
	if (r < 0)
		return r;
	if (file)
		r = engine_experiment_read(inv->engine, file, a->profile, x, err);
	if (r < 0)
		return r;
	r = read_arms(a, x, err);
	if (r < 0)
		return r;
	r = read_lists(a, x, err);
	if (r < 0)
		return r;
	r = read_texts(a, x, err);
	if (r < 0)
		return r;
	read_numbers(a, x);
	/* Elsewhere they are the worker's. */
	if (!a->on)
		run_warn_unset(&a->pass_env);
	return check_plan(a, x, err);
}
