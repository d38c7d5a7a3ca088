#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/cmd/cpus.h"
#include "cli/cmd/run-args.h"
#include "cli/cmd/run-on.h"
#include "cli/cmd/run-root.h"
#include "cli/cmd/run-words.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/show/clones.h"
#include "cli/show/fetched.h"
#include "cli/show/questions.h"
#include "cli/show/runs.h"
#include "engine/api/clone.h"

#define MEM_TO_START ((uint64_t)64 << 20) /* enough for any command to start with */

static const struct opt run_opts[] = {
	RUN_OPTS,
	OPT_FLAG(0, "no-snapshot", struct run_args, no_snapshot,
		 "take no snapshot of the clone first"),
	OPT_FLAG(0, "rm", struct run_args, rm, "remove CLONE afterwards"),
	OPT_FLAG('d', "detach", struct run_args, detach,
		 "print its id and return; see wait, attach, cancel"),
	OPT_STR(0, "on", "PLACE", struct run_args, on,
		"run it elsewhere: ssh:HOST, slurm, nats://HOST[/NAME]"),
	OPT_STR(0, "remote", "REMOTE", struct run_args, remote,
		"with --on: the remote that states travel through"),
	OPT_STR(0, "ticket", "ID", struct run_args, ticket,
		"with --on: follow a ticket that was sent before"),
	OPT_LIST(0, "label", "LABEL", struct run_args, label,
		 "with --on: only on a worker with this label"),
	OPT_DURATION(0, "deadline", "TIME", struct run_args, deadline,
		     "with --on: no worker begins it later than this"),
	OPT_STR(0, "creds", "FILE", struct run_args, creds, "with --on: NATS credentials file"),
	OPT_FLAG(0, "insecure", struct run_args, insecure,
		 "with --on: allow a server elsewhere without credentials"),
	OPT_STR(0, "sign", "KEY", struct run_args, sign, "with --on: SSH key that signs the state"),
	OPT_FLAG(0, "require-signature", struct run_args, signed_only,
		 "with --on: refuse results that nobody signed"),
	OPT_STR(0, "allowed-signers", "FILE", struct run_args, signers,
		"with --on: allowed signers (default: config.yaml)"),
	OPT_END,
};
_Static_assert(sizeof(struct run_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

void run_preset(void *to)
{
	struct run_args *args = to;

	args->mem = args->pids = args->time = args->disk = args->inodes = args->fsize =
	    args->nofile = args->output = args->net_out = args->ttl = args->ask_time =
		ENGINE_UNSAID;
}

/* --- what was asked for ----------------------------------------------------------------- */

/* One list for all that were given; NULL if there is none.  The caller owns it. */
static int join_net(const struct opt_list *given, char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT;

	if (given->n == 0)
		return 0;
	for (size_t i = 0; i < given->n; i++)
		if ((i > 0 && buf_append_u8(&all, ',') < 0) ||
		    buf_append_str(&all, given->items[i]) < 0)
			return err_nomem(err);
	*ret = buf_str(&all) ? strdup(buf_str(&all)) : NULL;
	return *ret ? 0 : err_nomem(err);
}

/* No clone has a name with ':' or '/'. */
static bool names_remote(const struct invocation *inv)
{
	const struct run_args *args = inv->args;

	return inv->command == &cmd_run && inv->n_before > 0 && !args->root &&
	       strpbrk(inv->words[0], ":/") && engine_remote_is(inv->engine, inv->words[0]);
}

/* With --root, what is no clone is a directory or a state to make one of; `try` makes one in any case. */
static bool names_clone(const struct invocation *inv)
{
	const struct run_args *args = inv->args;

	return inv->command == &cmd_run && inv->n_before > 0 && !names_remote(inv) &&
	       (!args->root || engine_has_clone(inv->engine, inv->words[0]));
}

static int no_command(struct invocation *inv, struct err *err)
{
	cmd_hint(inv, "help %s", inv->command->name);
	return err_set(err, -EINVAL, "'%s' needs a command: %s", inv->command->name,
		       inv->command->words);
}

static int check(struct invocation *inv, struct err *err)
{
	const struct run_args *args = inv->args;
	const bool named = names_clone(inv);
	const char *of_made = args->lazy              ? "lazy"
			      : args->skip_unreadable ? "skip-unreadable"
						      : NULL;
	const char *of_project = args->path ? "path" : args->wait ? "wait" : NULL;

	if (inv->n_words == inv->n_before && !args->code)
		return no_command(inv, err);
	if (args->rm && !named)
		return err_set(err, -EINVAL,
			       "option '--rm' is for a clone that is named: the one "
			       "that is made for a run is removed anyway");
	if (args->keep && named)
		return err_set(
		    err, -EINVAL,
		    "option '--keep' is for the clone that is made for a run: '%s' stays "
		    "anyway",
		    inv->words[0]);
	if (args->durability && named)
		return err_set(
		    err, -EINVAL,
		    "option '--durability' is for the clone that is made for a run: '%s' "
		    "keeps its own",
		    inv->words[0]);
	if (of_made && named)
		return err_set(
		    err, -EINVAL,
		    "option '--%s' is for the clone that is made for a run: name no clone",
		    of_made);
	if (of_project && (args->root || named || (args->path && inv->n_before > 0)))
		return err_set(err, -EINVAL,
			       "option '--%s' is for the clone that is made of the project for a "
			       "run: %s",
			       of_project, args->root ? "leave '--root' out" : "name no clone");
	if (args->ttl != ENGINE_UNSAID && !args->keep)
		return err_set(err, -EINVAL, "option '--ttl' needs '--keep'");
	if (args->tty && args->detach)
		return err_set(err, -EINVAL, "options '--tty' and '--detach' exclude each other");
	if (args->tty && inv->json)
		return err_set(err, -EINVAL, "options '--tty' and '--json' exclude each other");
	return 0;
}

static void end_progress(void *ctx)
{
	progress_done(ctx);
}

/* Before the first word of the run, and where no data goes. */
static void print_beginning(const struct engine_run *run, void *ctx)
{
	const struct invocation *inv = ctx;
	const struct run_args *args = inv->args;
	const char *end = args->tty ? "\r\n" : "\n";

	if (inv->quiet)
		return;
	if (!args->lazy && !args->root)
		clones_print_reading(stderr, args->keep ? run->clone : NULL, run->unread, end);
	runs_print_published(stderr, run, end);
}

static struct engine_run_limits limits_of(const struct run_args *args)
{
	return (struct engine_run_limits){
		.mem = args->mem,
		.cpus_milli = ENGINE_UNSAID,
		.pids = args->pids,
		.time_ms = args->time,
		.disk = args->disk,
		.inodes = args->inodes,
		.fsize = args->fsize,
		.nofile = args->nofile,
		.output = args->output,
		.net_out = args->net_out,
	};
}

static int read_options(const struct invocation *inv, struct engine_run_options *o, struct err *err)
{
	const struct run_args *args = inv->args;
	/* Of a clone that is thrown away nobody misses what power loss takes. */
	const int strict = clones_durability(args->durability, args->keep, err);
	int r = 0;

	if (strict < 0)
		return strict;
	*o = (struct engine_run_options){
		.clone = names_clone(inv) ? inv->words[0] : NULL,
		.profile = args->profile,
		.limits = limits_of(args),
		.workdir = args->workdir,
		.ro = cmd_values(&args->ro),
		.rw = cmd_values(&args->rw),
		.hide = cmd_values(&args->hide),
		.env = cmd_values(&args->env),
		.pass_env = cmd_values(&args->pass_env),
		.secrets = cmd_values(&args->secret),
		.secret_for = cmd_values(&args->secret_for),
		.tls_inspect = cmd_values(&args->tls_inspect),
		.allow_missing = cmd_values(&args->allow_missing),
		.publish = cmd_values(&args->publish),
		.artifacts = cmd_values(&args->artifact),
		.no_snapshot = args->no_snapshot,
		.lazy = args->lazy,
		.eager = args->wait,
		.skip_unreadable = args->skip_unreadable,
		.part = args->path,
		.keep = args->keep,
		.strict = strict,
		.remove = args->rm,
		.ttl_ms = args->ttl,
		.tty = args->tty,
		.in_fd = STDIN_FILENO,
		.out_fd = inv->json ? -1 : fileno(inv->out),
		.err_fd = inv->json ? -1 : STDERR_FILENO,
		.watch = progress_watch(inv->progress),
		.begins = end_progress,
		.begins_ctx = inv->progress,
		.began = print_beginning,
		.began_ctx = (void *)(uintptr_t)inv,
		.ask_ms = args->ask_time != ENGINE_UNSAID ? args->ask_time
			  : args->ask                     ? ENGINE_ASK_MS
							  : ENGINE_UNSAID,
	};
	if (args->root || args->as)
		r = run_root_choose(inv, o, err);
	return r < 0 ? r : cpus_read(args->cpus, &o->limits.cpus_milli, err);
}

/* --- what to type next ------------------------------------------------------------------- */

/* The same ports of the run, on any of this machine that are free. */
static void hint_ports(struct invocation *inv)
{
	CLEANUP(buf_done) struct buf value = BUF_INIT;
	const struct run_args *args = inv->args;
	int r = 0;

	for (size_t i = 0; i < args->publish.n; i++)
		for (const char *at = args->publish.items[i]; *at != '\0' && r >= 0;) {
			r = value.len > 0 ? buf_append_u8(&value, ',') : 0;
			if (r >= 0)
				r = buf_append(&value, at, strcspn(at, ":,"));
			if (r >= 0)
				r = buf_append_str(&value, ":0");
			at += strcspn(at, ",");
			at += *at == ',';
		}
	if (r >= 0 && buf_str(&value))
		cmd_hint_again(inv, &(struct hint_again){ .option = "publish",
							  .value = buf_str(&value),
							  .without = "publish" });
}

static void hint(struct invocation *inv, const struct engine_run *run, int r, const struct err *err)
{
	const struct run_args *args = inv->args;

	if (!args->skip_unreadable)
		cmd_hint_if_unreadable(inv, r, err);
	if (r == -ENOENT && args->profile)
		cmd_hint(inv, "profile list");
	if (r == -ENOENT && inv->n_before > 0)
		cmd_hint(inv, "list --all");
	if ((r == -EADDRINUSE || r == -EACCES) && args->publish.n > 0)
		hint_ports(inv);
	if (r == -EPERM && inv->n_before > 0 && run->state != ENGINE_RUN_REFUSED)
		cmd_hint(inv, "clone --from %s", inv->words[0]);
	if (run->state == ENGINE_RUN_REFUSED && run->oom_killed && args->mem < MEM_TO_START)
		cmd_hint_again(
		    inv, &(struct hint_again){ .option = "mem", .value = "64M", .without = "mem" });
}

static int refuse_bare(struct invocation *inv, const char *name, struct err *err)
{
	const struct bare *bare = &inv->bare;
	const struct run_args *args = inv->args;
	const bool takes = inv->command == &cmd_run || args->root;

	inv->json |= bare->json;
	if (bare->wrong.code < 0) {
		cmd_hint(inv, "help %s", inv->command->name);
		return err_set(err, -EINVAL, "%s", bare->wrong.msg);
	}
	if (takes && bare->n_rest == 0) {
		cmd_hint(inv, "help %s", inv->command->name);
		return err_set(err, -EINVAL, "'%s' is a clone, and '%s' needs a command: %s", name,
			       inv->command->name, inv->command->words);
	}
	if (takes)
		cmd_hint_dashes(inv, bare->n_rest);
	cmd_hint_dashes(inv, inv->n_words);
	if (takes)
		return err_set(err, -EINVAL, "'%s' is a clone: a command for it comes behind '--'",
			       name);
	return err_set(err, -EINVAL, "'%s' is a clone, and '%s' makes one of its own", name,
		       inv->command->name);
}

int run_read_bare(struct invocation *inv, struct err *err)
{
	if (!inv->bare.is)
		return 0;
	if (engine_has_clone(inv->engine, inv->words[0]))
		return refuse_bare(inv, inv->words[0], err);
	cmd_put_dashes(inv, inv->n_words);
	return 0;
}

int run_check(struct invocation *inv, struct err *err)
{
	struct engine_run_options unused;
	int r = read_options(inv, &unused, err);

	return r < 0 ? r : check(inv, err);
}

/* `here`: the clone that the current directory is in, or NULL. */
static int check_here(const struct run_args *args, const char *here, struct err *err)
{
	if (here && args->path)
		return err_set(err, -EINVAL,
			       "option '--path' is for a clone that is made of the project, and "
			       "this directory is in clone '%s'",
			       here);
	return 0;
}

int run_go(struct invocation *inv, struct engine_waiting **waits, struct engine_run *ret,
	   struct err *err)
{
	const struct run_args *args = inv->args;
	CLEANUP(strlist_done) struct strlist words = { 0 };
	AUTO_FREE char *here = waits || args->keep || args->root || inv->n_before > 0
				   ? NULL
				   : engine_clone_here(inv->engine);
	CLEANUP(prompt_done) struct prompt asked = { .inv = inv, .terminal = -1 };
	CLEANUP(engine_fetched_done) struct engine_fetched fetched = { 0 };
	AUTO_FREE char *net = NULL;
	struct engine_run_options options;
	int r = read_options(inv, &options, err);

	if (r < 0)
		return r;
	r = check(inv, err);
	r = r < 0 ? r : check_here(args, here, err);
	if (r < 0)
		return r;
	r = join_net(&args->net, &net, err);
	if (r < 0)
		return r;
	run_warn_unset(&args->pass_env);
	r = run_words(inv, &words, err);
	if (r == 0 && names_remote(inv)) {
		r = fetched_bring(inv, inv->words[0], NULL, &fetched, err);
		options.from = fetched.snapshot.id;
	}
	if (r < 0)
		return r;
	/* The snippet has come from there, and nothing is left of it. */
	if (args->code && strcmp(args->code, "-") == 0)
		options.in_fd = -1;
	if (here)
		options.clone = here;
	options.argv = (const char *const *)words.list;
	options.net = net;
	options.waits = waits;
	prompt_begin(&asked, args->tty, args->detach, &options);
	/* What a review begins with must not hide the rest of it. */
	options.show_out = waits && !args->tty && isatty(options.out_fd);
	options.show_err = waits && !args->tty && isatty(options.err_fd);

	if (args->detach)
		r = engine_run_start(inv->engine, &options, ret, err);
	else
		r = engine_run(inv->engine, &options, ret, err);
	progress_done(inv->progress);
	hint(inv, ret, r, err);
	return r;
}

static int print_json(const struct invocation *inv, const struct engine_run *r, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	run_set_json(j, r);
	return json_print(&doc, inv->out, err);
}

/* It runs, and what can be done about that. */
static int print_detached(const struct invocation *inv, const struct engine_run *run,
			  struct err *err)
{
	static const char *const next[] = { "attach", "wait", "cancel" };

	if (inv->json)
		return print_json(inv, run, err);
	fprintf(inv->out, "%s\n", run->id);
	print_beginning(run, (void *)(uintptr_t)inv);
	for (size_t i = 0; !inv->quiet && i < ARRAY_LEN(next); i++) {
		AUTO_FREE char *line = cmd_line(inv, next[i], (const char *[]){ run->id, NULL });

		if (line)
			fprintf(stderr, "hint: %s\n", line);
	}
	return CMD_OK;
}

/* On a worker of a queue. */
static int go_on(struct invocation *inv, struct err *err)
{
	struct engine_run_options options;
	int r = read_options(inv, &options, err);

	if (r == 0 && inv->n_words == inv->n_before)
		r = no_command(inv, err);
	return r < 0 ? r : run_on(inv, &options.limits, err);
}

static int run_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	const struct run_args *args = inv->args;
	int r = run_read_bare(inv, err);

	if (r < 0)
		return r;
	/* Without it, the command would run here, and nobody would look at a signature. */
	if (!args->on && (args->ticket || args->signed_only || args->signers || args->sign))
		return err_set(err, -EINVAL, "option '--%s' needs '--on'",
			       args->ticket        ? "ticket"
			       : args->signed_only ? "require-signature"
			       : args->signers     ? "allowed-signers"
						   : "sign");
	if (args->on)
		return go_on(inv, err);
	r = run_root_read_profile(inv, err);
	if (r < 0)
		return r;
	r = run_go(inv, NULL, &run, err);
	if (r < 0 && run.state == ENGINE_RUN_REFUSED)
		return fail_sandbox(inv, err);
	if (r == -EPIPE && run.state == ENGINE_RUN_ENDED)
		return run.exit_code;
	if (r < 0)
		return r;
	if (args->detach)
		return print_detached(inv, &run, err);
	if (inv->json)
		r = print_json(inv, &run, err);
	else
		run_tell(inv, &run);
	if (!inv->json && !inv->quiet && run.made && !run.removed)
		run_tell_kept(inv, stderr, &run);
	return r < 0 ? r : run.exit_code;
}

const struct command cmd_run = {
	.name = "run",
	.group = "Runs",
	.summary = "run a command in a sandbox on a clone",
	.words = "[CLONE --] COMMAND...",
	.max_words = 1,
	.takes_rest = true,
	.takes_command = true,
	.opts = run_opts,
	.preset = run_preset,
	.details =
	    "Without CLONE the command runs on the clone that holds the current directory, else on a\n"
	    "throw-away clone of the project as it is now. Options come before the command; put --\n"
	    "before a command that has the name of a clone. `@NAME` runs a task (see `tasks`).\n"
	    "The command sees the clone at the project's own path, the host's programs read-only, an\n"
	    "empty /tmp and home, and no network. snap saves a clone of yours first as an automatic\n"
	    "snapshot (`log --all CLONE`); a rollback to it undoes everything that the command did.\n"
	    "0 means unlimited. Unset limits come from the profile 'default'. If CLONE is REMOTE/NAME,\n"
	    "snap fetches that snapshot and runs the command on a throw-away clone of it.\n"
	    "\n"
	    "With --root the clone is a whole root file system: it is the command's /, and the command\n"
	    "is root there, but not outside. CLONE is then a clone, a directory that holds a system\n"
	    "(with a slash in its name), or a state; without CLONE, the machine's own /. Only a named\n"
	    "clone stays. In a project, the command sees a throw-away clone of that at its own path, too,\n"
	    "and starts there. See docs/guide/machine.md.\n"
	    "\n"
	    "Exits with the command's own code; 124: time was up, 125: snap itself failed, 126:\n"
	    "not executable, 127: not found, 128+N: killed by signal N.\n",
	.examples = "run make test\nrun --mem 4G --time 1h idea -- cargo build\n"
		    "run --json --secret TOKEN -- ./deploy --dry-run\n"
		    "run --net packages.example.org:443 -- npm ci\n"
		    "run @test\nrun --code - --lang python < script.py\n"
		    "run --root box -- apt-get install -y nginx\n",
	.run = run_run,
};
