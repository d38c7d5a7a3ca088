#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/size.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/show/diffs.h"
#include "engine/api/bisect.h"

#define JOBS_MOST 8 /* unless more are asked for */

struct bisect_args {
	const char *profile, *log;
	uint64_t jobs, time, mem;
	struct opt_list env;
	bool git, all;
};

static const struct opt bisect_opts[] = {
	OPT_U64('j', "jobs", "K", struct bisect_args, jobs,
		"runs at once (default: one for each processor, at most 8)"),
	OPT_FLAG(0, "git", struct bisect_args, git, "GOOD and BAD are commits"),
	OPT_FLAG('a', "all", struct bisect_args, all, "try automatic snapshots, too"),
	OPT_STR(0, "log", "FILE", struct bisect_args, log,
		"write verdicts to FILE, and go on from those that it has"),
	OPT_DURATION(0, "time", "TIME", struct bisect_args, time, "how long a run may take"),
	OPT_SIZE(0, "mem", "SIZE", struct bisect_args, mem, "memory of a run"),
	OPT_LIST('e', "env", "NAME=VALUE", struct bisect_args, env, "set a variable"),
	OPT_STR(0, "profile", "PROFILE", struct bisect_args, profile, "of each run"),
	OPT_END,
};
_Static_assert(sizeof(struct bisect_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

static void preset(void *to)
{
	struct bisect_args *args = to;
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	args->jobs = n < 1 ? 1 : n > JOBS_MOST ? JOBS_MOST : (uint64_t)n;
	args->time = args->mem = ENGINE_UNSAID;
}

/* --- for programs ----------------------------------------------------------------------- */

static const char *verdict_name(enum engine_verdict verdict)
{
	switch (verdict) {
	case ENGINE_UNTRIED:
		break;
	case ENGINE_GOOD:
		return "good";
	case ENGINE_BAD:
		return "bad";
	case ENGINE_SKIPPED:
		return "skip";
	}
	return "untried";
}

static void set_tried(struct json j, const struct engine_bisect_state *s)
{
	json_set_text(j, "state", s->id);
	json_set_text(j, "title", s->title);
	json_set_text(j, "verdict", verdict_name(s->verdict));
	json_set_uint(j, "step", s->step);
	json_set_text(j, "run", s->run[0] != '\0' ? s->run : NULL);
	json_set_int_if(j, "exit_code", s->run[0] != '\0', s->exit_code);
	json_set_uint(j, "duration_ms", s->duration_ms);
}

static int by_step(const void *a, const void *b)
{
	const struct engine_bisect_state *const *x = a, *const *y = b;

	return (*x)->step != (*y)->step ? ((*x)->step < (*y)->step ? -1 : 1) : (*x < *y ? -1 : 1);
}

static int print_json(const struct invocation *inv, const struct engine_bisect *b, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE const struct engine_bisect_state **tried = calloc(b->n, sizeof(*tried));
	struct json j = out_json_begin(inv, &doc), array;
	size_t n = 0;

	if (!tried)
		return err_nomem(err);
	for (size_t i = 1; i + 1 < b->n; i++)
		if (b->list[i].verdict != ENGINE_UNTRIED)
			tried[n++] = &b->list[i];
	qsort(tried, n, sizeof(*tried), by_step);
	json_set_text(j, "of", b->git ? "commits" : "snapshots");
	json_set_text(j, "good", b->list[0].id);
	json_set_text(j, "bad", b->list[b->n - 1].id);
	json_set_bool(j, "found", b->found);
	json_set_text(j, "first_bad", b->found ? b->list[b->bad].id : NULL);
	json_set_text(j, "title", b->found ? b->list[b->bad].title : NULL);
	json_set_text(j, "last_good", b->list[b->good].id);
	array = json_set_array(j, "candidates");
	for (size_t i = b->good + 1; i <= b->bad; i++)
		json_add_text(array, b->list[i].id);
	json_set_bool(j, "unsteady", b->unsteady);
	json_set_uint(j, "states", b->n);
	json_set_uint(j, "steps", b->steps);
	json_set_uint(j, "runs", b->runs);
	array = json_set_array(j, "tried");
	for (size_t i = 0; i < n; i++)
		set_tried(json_add_object(array), tried[i]);
	json_set_uint(j, "elapsed_ms", b->elapsed_ms);
	return json_print(&doc, inv->out, err);
}

/* --- for people ------------------------------------------------------------------------- */

static void print_state(const struct invocation *inv, FILE *out,
			const struct engine_bisect_state *s)
{
	fprintf(out, "%s%.*s%s", out_style(inv, OUT_ID), OUT_SHORT_ID, s->id,
		out_style(inv, OUT_PLAIN));
	if (*s->title != '\0') {
		fputs("  ", out);
		out_line(out, s->title);
	}
	fputc('\n', out);
}

static void print_line(size_t states, bool git, void *ctx)
{
	const struct invocation *inv = ctx;
	FILE *out = stderr;
	const struct bisect_args *args = inv->args;

	if (inv->json || inv->quiet)
		return;
	fprintf(out, "%zu %s between good and bad, %" PRIu64 " at once\n", states - 2,
		git ? "commits" : "snapshots", args->jobs);
}

static void print_tried(const struct engine_bisect_state *s, void *ctx)
{
	const struct invocation *inv = ctx;
	FILE *out = stderr;
	char took[DURATION_TEXT_MAX];
	const enum out_style style = s->verdict == ENGINE_GOOD  ? OUT_GOOD
				     : s->verdict == ENGINE_BAD ? OUT_BAD
								: OUT_DIM;

	if (inv->json || inv->quiet)
		return;
	fprintf(out, "step %u  %s%-4s%s  exit %-3d  %8s  ", s->step, out_style(inv, style),
		verdict_name(s->verdict), out_style(inv, OUT_PLAIN), s->exit_code,
		duration_format(s->duration_ms, took));
	print_state(inv, out, s);
}

static void print_end(const struct invocation *inv, const struct engine_bisect *b)
{
	char took[DURATION_TEXT_MAX];

	if (b->found) {
		fprintf(inv->out, "%sfirst bad:%s ", out_style(inv, OUT_BOLD),
			out_style(inv, OUT_PLAIN));
		print_state(inv, inv->out, &b->list[b->bad]);
	} else {
		fputs("every state between the last good and the first bad one was skipped; the "
		      "first bad one is one of\n",
		      inv->out);
		for (size_t i = b->good + 1; i <= b->bad; i++) {
			fputs("  ", inv->out);
			print_state(inv, inv->out, &b->list[i]);
		}
	}
	fputs("last good: ", inv->out);
	print_state(inv, inv->out, &b->list[b->good]);
	out_plural(inv->out, b->steps, "step", "steps");
	fputs(", ", inv->out);
	out_plural(inv->out, b->runs, "run", "runs");
	fprintf(inv->out, ", in %s\n", duration_format(b->elapsed_ms, took));
}

static size_t add_option(const char **words, size_t n, const char *option, const char *value)
{
	words[n] = option;
	words[n + 1] = value;
	return n + 2;
}

static void print_hint(const struct invocation *inv, const char *command, const char *const *words)
{
	AUTO_FREE char *line = cmd_line(inv, command, words);

	if (line)
		fprintf(stderr, "hint: %s\n", line);
}

/* What to type to run the command on this state, as the search would. */
static void hint_state(const struct invocation *inv, bool git, const char *id)
{
	const struct bisect_args *args = inv->args;
	AUTO_FREE const char **words =
	    calloc(2 * args->env.n + (size_t)inv->n_words + 16, sizeof(*words));
	char clone[16], script[128], mem[32], time[32];
	size_t n = 0;

	if (!words)
		return;
	snprintf(clone, sizeof(clone), "end-%.*s", OUT_SHORT_ID, id);
	snprintf(script, sizeof(script), "git checkout -qf %.64s && exec \"$@\"", id);
	snprintf(mem, sizeof(mem), "%" PRIu64, args->mem);
	snprintf(time, sizeof(time), "%" PRIu64 "ms", args->time);
	if (args->profile)
		n = add_option(words, n, "--profile", args->profile);
	if (args->mem != ENGINE_UNSAID)
		n = add_option(words, n, "--mem", mem);
	if (args->time != ENGINE_UNSAID)
		n = add_option(words, n, "--time", time);
	for (size_t i = 0; i < args->env.n; i++)
		n = add_option(words, n, "--env", args->env.items[i]);
	if (!git)
		words[n++] = clone;
	words[n++] = "--";
	if (git) {
		n = add_option(words, n, "sh", "-c");
		n = add_option(words, n, script, "sh");
	}
	for (int i = inv->n_before; i < inv->n_words; i++)
		words[n++] = inv->words[i];
	if (!git)
		print_hint(inv, "clone", (const char *[]){ "-n", clone, "--from", id, NULL });
	print_hint(inv, "run", words);
}

/* As with git, the ends are believed.  If every verdict agrees with one of them alone, that may be wrong. */
static void doubt_ends(const struct invocation *inv, const struct engine_bisect *b)
{
	const bool all_good = b->bad == b->n - 1 && b->good > 0;
	const bool all_bad = b->good == 0 && b->bad < b->n - 1;
	const char *id = b->list[all_good ? b->n - 1 : 0].id;
	const char *end = all_good ? "bad" : "good";

	if (b->runs == 0 || (!all_good && !all_bad))
		return;
	log_warn("the %s end %.*s is probably not %s: the command %s on every state tried, and "
		 "this one was not tried",
		 end, OUT_SHORT_ID, id, end, all_good ? "succeeded" : "failed");
	hint_state(inv, b->git, id);
}

static int print_human(struct invocation *inv, const struct engine_bisect *b, struct err *err)
{
	bool unused;

	if (inv->quiet) {
		if (b->found)
			fprintf(inv->out, "%s\n", b->list[b->bad].id);
		return 0;
	}
	print_end(inv, b);
	doubt_ends(inv, b);
	if (b->unsteady)
		log_warn("a state is good although one before it is bad: the command may not "
			 "always end alike");
	if (b->git || !b->found)
		return 0;
	return diffs_print(inv,
			   &(struct diffs_options){
			       .a = b->list[b->good].id,
			       .b = b->list[b->bad].id,
			       .stat = true,
			       .context = DIFFS_CONTEXT,
			   },
			   &unused, err);
}

/* --- the command ------------------------------------------------------------------------ */

static int search(struct invocation *inv, int stop_fd, struct engine_bisect *ret, struct err *err)
{
	const struct bisect_args *args = inv->args;
	AUTO_FREE const char **argv =
	    calloc((size_t)(inv->n_words - inv->n_before) + 1, sizeof(*argv));
	struct engine_run_options run = {
		.profile = args->profile,
		.env = { .items = args->env.items, .n = args->env.n },
		.ttl_ms = ENGINE_UNSAID,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
	};
	struct engine_bisect_options options = {
		.good = inv->words[0],
		.bad = inv->words[1],
		.git = args->git,
		.automatic = args->all,
		.jobs = args->jobs,
		.log = args->log,
		.run = &run,
		.stop_fd = stop_fd,
		.begins = print_line,
		.tried = print_tried,
		.ctx = inv,
	};

	if (!argv)
		return err_nomem(err);
	for (int i = inv->n_before; i < inv->n_words; i++)
		argv[i - inv->n_before] = inv->words[i];
	run.argv = argv;
	engine_run_limits_init(&run.limits);
	run.limits.time_ms = args->time;
	run.limits.mem = args->mem;
	return engine_bisect(inv->engine, &options, ret, err);
}

static int bisect_run(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_bisect_done) struct engine_bisect b = { 0 };
	const struct bisect_args *args = inv->args;
	char sig;
	int r, fd;

	if (inv->n_before != 2 || inv->n_words == inv->n_before) {
		cmd_hint(inv, "help bisect");
		return err_set(err, -EINVAL,
			       "'bisect' needs a good state, a bad one, and a "
			       "command behind '--'");
	}
	if (args->jobs < 1 || args->jobs > ENGINE_BISECT_JOBS_MAX)
		return err_set(err, -EINVAL, "option '--jobs' takes 1 to %d",
			       ENGINE_BISECT_JOBS_MAX);
	/* The runs are nobody's children: whatever ends us must end them first. */
	fd = interrupt_catch((const int[]){ SIGINT, SIGTERM, SIGHUP, SIGPIPE }, 4, err);
	if (fd < 0)
		return fd;
	r = search(inv, fd, &b, err);
	if (r == -EINTR)
		return read(fd, &sig, 1) == 1 ? 128 + sig : 128 + SIGINT;
	if (r == -ENOENT || r == -EINVAL)
		cmd_hint(inv, "log");
	if (r < 0)
		return r;
	r = inv->json ? print_json(inv, &b, err) : print_human(inv, &b, err);
	return r < 0 ? r : b.found ? CMD_OK : CMD_FAILED;
}

const struct command cmd_bisect = {
	.name = "bisect",
	.group = "Runs",
	.rare = true,
	.summary = "find the first bad snapshot or commit, several clones at once",
	.words = "GOOD BAD -- CMD...",
	.min_words = 2,
	.max_words = 2,
	.takes_rest = true,
	.opts = bisect_opts,
	.preset = preset,
	.details =
	    "Runs CMD on clones of states between the two: exit 0 is good, 125 skips, all else is bad. "
	    "K runs at once split what is left K+1 ways. Commits are checked out in the clones; a "
	    "merge is one step. The project is not touched.",
	.examples = "bisect v1 @ -- make test\nbisect -j4 HEAD~200 HEAD -- ./check.sh\n",
	.run = bisect_run,
};
