#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "cli/cmd/experiment-plan.h"
#include "cli/fail.h"
#include "cli/progress.h"
#include "cli/show/experiment-page.h"
#include "cli/show/experiments.h"
#include "cli/show/promotions.h"
#include "cli/unborn.h"

/* --- what came of it ----------------------------------------------------------------------- */

struct outcome {
	struct engine_experiment x;
	struct engine_promotion promotion;
	int signal; /* that ended it; 0: none is known */
};

static void outcome_done(struct outcome *o)
{
	engine_promotion_done(&o->promotion);
	engine_experiment_done(&o->x);
}

/* What kept it from promoting: now, or when it ended. */
static enum engine_promote_end end_of(const struct outcome *o)
{
	return o->promotion.end != ENGINE_PROMOTED     ? o->promotion.end
	       : o->x.promote == ENGINE_PROMOTE_NO_ARM ? ENGINE_PROMOTED
						       : o->x.outcome;
}

static bool is_blocked(const struct outcome *o)
{
	return end_of(o) != ENGINE_PROMOTED && o->x.promote != ENGINE_PROMOTE_COMPATIBLE;
}

/* Somebody removed the clone of the one that was to be promoted. */
static bool lost_winner(const struct engine_experiment *x)
{
	for (size_t i = 0; x->promote == ENGINE_PROMOTE_BEST && x->winner && i < x->n_arms; i++)
		if (strcmp(x->arms[i].name, x->winner) == 0)
			return !x->arms[i].has_clone && x->arms[i].promotion[0] == '\0' &&
			       x->arms[i].why;
	return false;
}

static int code_of(const struct outcome *o)
{
	static const int codes[] = {
		[ENGINE_PROMOTED] = CMD_OK,    [ENGINE_CONFLICTS] = CMD_CONFLICT,
		[ENGINE_HELD] = CMD_REFUSED,   [ENGINE_CHECK_FAILED] = CMD_CHECK_FAILED,
		[ENGINE_MOVED] = CMD_CONFLICT,
	};
	const struct engine_experiment *x = &o->x;
	bool passed = false;

	for (size_t i = 0; i < x->n_arms; i++)
		passed |= x->arms[i].state == ENGINE_ARM_PASSED;
	if (!passed)
		return CMD_NO_ARM;
	if (x->promote == ENGINE_PROMOTE_BEST && x->n_tie > 0)
		return CMD_TIE;
	if (is_blocked(o))
		return codes[end_of(o)];
	if (lost_winner(x))
		return CMD_NOT_FOUND;
	if (x->promote == ENGINE_PROMOTE_COMPATIBLE && x->n_promoted == 0 &&
	    end_of(o) != ENGINE_PROMOTED)
		return CMD_CONFLICT;
	return CMD_OK;
}

static int print_json(const struct invocation *inv, const char *act, const struct outcome *o,
		      const struct standings *s, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc);

	json_set_text(j, "act", act);
	experiments_set_json(j, &o->x, s);
	return json_print(&doc, inv->out, err);
}

/* What to type for a winner, or for one of those that tie, while nothing is promoted. */
static void print_next(const struct invocation *inv, const struct engine_experiment *x)
{
	const char *best = x->winner ? x->winner : x->n_tie > 0 ? x->tie[0] : NULL;
	AUTO_FREE char *line = NULL;

	for (size_t i = 0; best && i < x->n_arms; i++)
		if (x->arms[i].promotion[0] != '\0' ||
		    (strcmp(x->arms[i].name, best) == 0 && !x->arms[i].has_clone))
			return;
	if (best)
		line = cmd_line(inv, "experiment promote", (const char *[]){ x->name, best, NULL });
	if (line)
		fprintf(inv->out, "to take %s: %s\n", x->winner ? "it" : "one of them", line);
}

/* How to read what arms printed that did not pass. */
static void print_failures(const struct invocation *inv, const struct engine_experiment *x)
{
	CLEANUP(failures_done) struct failures f = { 0 };
	struct err why = { 0 };

	if (failures_find(inv, x, false, &f, &why) < 0)
		log_warn("%s, continuing", why.msg);
	failures_print(inv, inv->out, &f);
}

/* It goes on without us. */
static int print_started(struct invocation *inv, const char *act, const struct outcome *o,
			 struct err *err)
{
	AUTO_FREE char *line = NULL;

	if (inv->json)
		return print_json(inv, act, o, NULL, err);
	fprintf(inv->out, "%s\n", o->x.name);
	if (inv->quiet)
		return CMD_OK;
	line = cmd_line(inv, "experiment wait", (const char *[]){ o->x.name, NULL });
	if (line)
		fprintf(stderr, "it goes on: %s\n", line);
	return CMD_OK;
}

static int tell(struct invocation *inv, const char *act, const struct outcome *o, struct err *err)
{
	const int code = code_of(o);
	int r = 0;

	if (inv->json)
		r = print_json(inv, act, o, NULL, err);
	else if (inv->quiet && o->x.winner)
		fprintf(inv->out, "%s\n", o->x.winner);
	if (!inv->json && !inv->quiet) {
		experiments_print(inv, inv->out, &o->x);
		print_failures(inv, &o->x);
		print_next(inv, &o->x);
	}
	if (r < 0 || inv->json)
		return r < 0 ? r : code;
	if (is_blocked(o) && o->promotion.end != ENGINE_PROMOTED)
		return promotions_tell(inv, &o->promotion, err);
	return code;
}

/* --- acts ---------------------------------------------------------------------------------- */

static void on_check(const char *command, const struct engine_run *run, void *ctx)
{
	struct experiments_view *v = ctx;

	if (!v->inv->json)
		promotions_on_check(command, run, (void *)(uintptr_t)v->inv);
}

static struct engine_experiment_options options_of(struct invocation *inv,
						   struct experiments_view *v, struct outcome *o)
{
	const struct experiment_args *args = inv->args;

	return (struct engine_experiment_options){
		.detach = args->detach,
		.tell = experiments_tell,
		.tick_ms = v->live ? 500 : 0,
		.checking = on_check,
		.ctx = v,
		.watch = progress_watch(inv->progress),
		.ret_signal = &o->signal,
	};
}

/* Print what came of the experiment, in any case. */
static int write_page(const struct invocation *inv, const struct engine_experiment *x)
{
	CLEANUP(standings_done) struct standings s = { 0 };
	const struct experiment_args *args = inv->args;
	struct err why = { 0 };
	CLEANUP(failures_done) struct failures failures = { 0 };
	int r = args->html ? standings_find(inv, x, true, &s, &why) : 0;

	if (r >= 0 && args->html)
		r = failures_find(inv, x, true, &failures, &why);
	if (r >= 0 && args->html)
		r = experiment_page_write(args->html, &s, &failures, &why);
	if (r < 0)
		log_warn("the page was not written: %s, continuing", why.msg);
	return r;
}

static int print_with_page(struct invocation *inv, const char *act, const struct outcome *o,
			   struct err *err)
{
	const int page = write_page(inv, &o->x);
	const int r = tell(inv, act, o, err);

	return r == CMD_OK && page < 0 ? CMD_FAILED : r;
}

static void hint_resume(struct invocation *inv, const char *name)
{
	const char *const words[] = { name, NULL };

	cmd_hint_words(inv, "experiment resume", words);
	cmd_hint_words(inv, "experiment rm", words);
}

static int finish(struct invocation *inv, const char *act, struct experiments_view *v, int r,
		  const struct outcome *o, struct err *err)
{
	progress_done(inv->progress);
	experiments_view_done(v);
	if (r == -EINTR && o->x.name) {
		hint_resume(inv, o->x.name);
		return fail_interrupted(inv, o->signal, err);
	}
	if (r == -EEXIST)
		cmd_hint(inv, "experiment list --all");
	if (r < 0)
		return r;
	if (o->x.alive && o->x.state != ENGINE_EXPERIMENT_ENDED)
		return print_started(inv, act, o, err);
	return print_with_page(inv, act, o, err);
}

static int start(struct invocation *inv, const char *file, struct err *err)
{
	const struct experiment_args *args = inv->args;
	CLEANUP(outcome_done) struct outcome o = { 0 };
	struct engine_experiment_options options;
	struct experiments_view view;
	int r = experiment_plan_read(inv, file, &o.x, err);

	if (r == -EINVAL || r == -ENOENT)
		cmd_hint(inv, "help experiment");
	if (r < 0)
		return r;
	experiments_view_begin(&view, inv, args->steps);
	options = options_of(inv, &view, &o);
	r = engine_experiment(inv->engine, &o.x, &options, &o.promotion, err);
	return finish(inv, "run", &view, r, &o, err);
}

static int resume(struct invocation *inv, struct err *err)
{
	const struct experiment_args *args = inv->args;
	CLEANUP(outcome_done) struct outcome o = { 0 };
	struct engine_experiment_options options;
	struct experiments_view view;
	int r;

	experiments_view_begin(&view, inv, args->steps);
	options = options_of(inv, &view, &o);
	r = engine_experiment_resume(inv->engine, inv->words[1], &options, &o.x, &o.promotion, err);
	return finish(inv, "resume", &view, r, &o, err);
}

static int promote(struct invocation *inv, struct err *err)
{
	CLEANUP(outcome_done) struct outcome o = { 0 };
	struct engine_experiment_options options;
	struct experiments_view view;
	int r;

	experiments_view_begin(&view, inv, false);
	options = options_of(inv, &view, &o);
	options.tell = NULL;
	options.detach = false;
	options.plan = ((const struct experiment_args *)inv->args)->plan;
	r = engine_experiment_promote(inv->engine, inv->words[1], inv->words[2], &options, &o.x,
				      &o.promotion, err);
	if (o.x.name && (r == -ENOENT || r == -ECANCELED))
		cmd_hint_words(inv, "experiment show", (const char *[]){ inv->words[1], NULL });
	else if (r == -ENOENT)
		cmd_hint(inv, "experiment list");
	else if (r == -EBUSY && o.x.name && !o.x.alive)
		hint_resume(inv, inv->words[1]);
	/* What was asked for is this arm, not a winner. */
	o.x.promote = ENGINE_PROMOTE_NO_ARM;
	return finish(inv, "promote", &view, r, &o, err);
}

/* While it goes on, its arms and the project are others' business; and the record is there in any case. */
static bool find_standings(const struct invocation *inv, const struct engine_experiment *x,
			   struct standings *ret)
{
	const struct experiment_args *args = inv->args;
	struct err why = { 0 };
	int r;

	if (x->alive)
		return false;
	r = standings_find(inv, x, args->html != NULL, ret, &why);
	if (r < 0)
		log_warn("cannot compare the arms: %s, continuing", why.msg);
	return r >= 0;
}

static int show(struct invocation *inv, struct err *err)
{
	CLEANUP(outcome_done) struct outcome o = { 0 };
	CLEANUP(standings_done) struct standings s = { 0 }; /* after `o`, which it looks at */
	CLEANUP(failures_done) struct failures failures = { 0 };
	const struct experiment_args *args = inv->args;
	int r = engine_experiment_load(inv->engine, inv->words[1], &o.x, err);
	bool known;

	if (r < 0)
		return r;
	known = find_standings(inv, &o.x, &s);
	if (args->html && !known)
		return err_set(err, -EBUSY,
			       "experiment '%s' goes on: a page is made when it is over", o.x.name);
	r = failures_find(inv, &o.x, true, &failures, err);
	if (r >= 0 && args->html)
		r = experiment_page_write(args->html, &s, &failures, err);
	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, "show", &o, known ? &s : NULL, err);
	experiments_print(inv, inv->out, &o.x);
	if (known)
		standings_print(inv, inv->out, &s);
	failures_print(inv, inv->out, &failures);
	return CMD_OK;
}

/* Nobody works on it, and it is not over. */
static int print_interrupted(struct invocation *inv, const char *act, const struct outcome *o,
			     struct err *err)
{
	AUTO_FREE char *line = NULL;
	int r = 0;

	if (inv->json)
		r = print_json(inv, act, o, NULL, err);
	else if (!inv->quiet)
		experiments_print(inv, inv->out, &o->x);
	if (r >= 0 && !inv->json && !inv->quiet)
		line = cmd_line(inv, "experiment resume", (const char *[]){ o->x.name, NULL });
	if (line)
		fprintf(inv->out, "to go on: %s\n", line);
	return r < 0 ? r : CMD_FAILED;
}

static int wait_for(struct invocation *inv, struct err *err)
{
	const struct experiment_args *args = inv->args;
	CLEANUP(outcome_done) struct outcome o = { 0 };
	struct engine_experiment_options options;
	struct experiments_view view;
	int r;

	experiments_view_begin(&view, inv, args->steps);
	options = options_of(inv, &view, &o);
	r = engine_experiment_wait(inv->engine, inv->words[1], args->timeout, &options, &o.x, err);
	experiments_view_done(&view);
	if (r < 0)
		return r;
	if (r == 0)
		return o.x.state == ENGINE_EXPERIMENT_ENDED
			   ? print_with_page(inv, "wait", &o, err)
			   : print_interrupted(inv, "wait", &o, err);
	r = inv->json ? print_json(inv, "wait", &o, NULL, err) : 0;
	if (!inv->json && !inv->quiet)
		fprintf(stderr, "time is up, experiment %s goes on\n", inv->words[1]);
	return r < 0 ? r : CMD_TIME_UP;
}

static int cancel(struct invocation *inv, struct err *err)
{
	CLEANUP(outcome_done) struct outcome o = { 0 };
	int r = engine_experiment_cancel(inv->engine, inv->words[1], &o.x, err);

	if (r < 0)
		return r;
	if (inv->json)
		return print_json(inv, "cancel", &o, NULL, err);
	if (!inv->quiet)
		fprintf(inv->out, r > 0 ? "%s was over already\n" : "cancelled %s\n", o.x.name);
	return CMD_OK;
}

static int announce(struct invocation *inv, struct err *err)
{
	const struct experiment_args *args = inv->args;
	const struct engine_watch watch = progress_watch(inv->progress);
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct engine_announced announced;
	const char *text = inv->n_words > 1 ? inv->words[1] : "8";
	const size_t digits = strspn(text, "0123456789");
	const uint64_t count = strtoull(text, NULL, 10);
	struct json j;
	int r;

	if (digits == 0 || text[digits] != '\0' || count == 0 || count > ENGINE_ARMS_MAX)
		return err_set(err, -EINVAL, "'%s' is no number of arms: 1 to %d", text,
			       ENGINE_ARMS_MAX);
	r = engine_announce(inv->engine, args->from, count, &watch, &announced, err);
	progress_done(inv->progress);
	if (r < 0)
		return r;
	if (!inv->json && !inv->quiet)
		fprintf(inv->out, "clones of %s are made ready for %s arms\n", announced.snapshot,
			text);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "announce");
	json_set_text(j, "snapshot", announced.snapshot);
	json_set_uint(j, "count", count);
	return json_print(&doc, inv->out, err);
}

static int list(struct invocation *inv, struct err *err)
{
	CLEANUP(engine_experiments_done) struct engine_experiments l = { 0 };
	const struct experiment_args *args = inv->args;
	CLEANUP(json_done) struct json_doc doc = { 0 };
	AUTO_FREE char *unborn = NULL;
	struct json j;
	int r = engine_experiments(inv->engine, args->all, &l, err);

	r = unborn_or(inv, r, "no experiments yet", &unborn, err);
	if (r != 0)
		return r < 0 ? r : CMD_OK;
	for (size_t i = 0; inv->quiet && !inv->json && i < l.n; i++)
		fprintf(inv->out, "%s\n", l.list[i].name);
	if (!inv->quiet && !inv->json)
		experiments_print_list(inv, &l);
	if (!inv->json)
		return CMD_OK;
	j = out_json_begin(inv, &doc);
	json_set_text(j, "act", "list");
	JSON_SET_LIST(j, "experiments", l.list, l.n, experiments_set_summary);
	return json_print(&doc, inv->out, err);
}

static int remove_all(struct invocation *inv, struct err *err)
{
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(inv, &doc), array;
	int r = 0;

	json_set_text(j, "act", "rm");
	array = json_set_array(j, "removed");
	for (int i = 1; i < inv->n_words && r >= 0; i++) {
		r = engine_experiment_remove(inv->engine, inv->words[i], err);
		json_add_name(array, inv->words[i]);
		if (r >= 0 && !inv->json && !inv->quiet)
			fprintf(inv->out, "removed %s\n", inv->words[i]);
	}
	if (r == -ENOENT)
		cmd_hint(inv, "experiment list --all");
	if (r < 0)
		return r;
	return inv->json ? json_print(&doc, inv->out, err) : CMD_OK;
}

static const struct {
	const char *word;
	int min, max;
	int (*run)(struct invocation *inv, struct err *err);
	const char *takes;
} acts[] = {
	{ "list", 1, 1, list, "no further word" },
	{ "ls", 1, 1, list, "no further word" },
	{ "show", 2, 2, show, "NAME" },
	{ "resume", 2, 2, resume, "NAME" },
	{ "wait", 2, 2, wait_for, "NAME" },
	{ "promote", 3, 3, promote, "NAME ARM" },
	{ "cancel", 2, 2, cancel, "NAME" },
	{ "rm", 2, 1000, remove_all, "NAME..." },
	{ "announce", 1, 2, announce, "[N]" },
};

/* The words fit no act, and are no name of a file. */
static int wrong_words(struct invocation *inv, struct err *err)
{
	cmd_hint(inv, "help experiment");
	for (size_t i = 0; i < ARRAY_LEN(acts); i++)
		if (strcmp(acts[i].word, inv->words[0]) == 0)
			return err_set(err, -EINVAL, "'experiment %s' takes %s", acts[i].word,
				       acts[i].takes);
	return err_set(err, -EINVAL,
		       "'experiment' takes --arm NAME=COMMAND, the name of a file, or 'list', "
		       "'show NAME', 'resume NAME', 'wait NAME', 'cancel NAME', "
		       "'promote NAME ARM', 'rm NAME...' or 'announce [N]'");
}

static bool is_act(const char *word)
{
	return VEC_HAS(it, acts, ARRAY_LEN(acts), strcmp(it->word, word) == 0);
}

static int experiment_run(struct invocation *inv, struct err *err)
{
	const struct experiment_args *args = inv->args;
	int page = args->html ? experiment_page_check(args->html, err) : 0;

	if (page >= 0 && args->detach && args->html && strcmp(args->html, "-") == 0)
		page = err_set(err, -EINVAL,
			       "'--html -' needs the end of the experiment, which '--detach' does "
			       "not wait for");
	if (page >= 0)
		page = page_take_stdout(inv, args->html, err);
	if (page < 0)
		return page;
	if (inv->n_words == 0)
		return start(inv, NULL, err);
	for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
		int r;

		if (strcmp(acts[i].word, inv->words[0]) != 0 || inv->n_words < acts[i].min ||
		    inv->n_words > acts[i].max)
			continue;
		r = acts[i].run(inv, err);
		if (r == -ENOENT && inv->n_hints == 0)
			cmd_hint(inv, "experiment list --all");
		if (r == -EBUSY && inv->n_words > 1 && inv->n_hints == 0) {
			const char *const name[] = { inv->words[1], NULL };

			cmd_hint_words(inv, "experiment wait", name);
			cmd_hint_words(inv, "experiment cancel", name);
		}
		return r;
	}
	if (inv->n_words == 1 && !is_act(inv->words[0]))
		return start(inv, inv->words[0], err);
	return wrong_words(inv, err);
}

const struct command cmd_experiment = {
	.name = "experiment",
	.alias = "exp",
	.group = "Runs",
	.summary = "try several changes at once, judge them alike, promote the best",
	.words = "[show|wait|cancel|resume|promote|rm EXPERIMENT | list | FILE]",
	.max_words = 1000,
	.leaves_clone = true,
	.opts = experiment_plan_opts,
	.preset = experiment_plan_preset,
	.details =
	    "Each arm is a shell command that runs in the sandbox on its own clone of the same state.\n"
	    "An arm passes if its command and all checks exit with 0. Checks and scores run on another\n"
	    "clone of its result. snap measures scores after all arms have ended, one at a time, in\n"
	    "rounds that go through all arms; a difference within the spread is a tie.\n"
	    "\n"
	    "FILE names a plan: .snap/experiments/FILE.yaml in the project, or experiments/FILE.yaml in\n"
	    "your configuration. Options add to the plan or override it. --arm-file puts arms inside an arm.\n"
	    "\n"
	    "The exit code is 15 if no arm passed, 16 if a tie kept --promote-best from promoting, and\n"
	    "the code of `promote` if the promotion failed.\n"
	    "\n"
	    "'list' lists experiments, 'show' prints one with what each arm changed, and whether it\n"
	    "would merge. 'promote' promotes an arm that passed. 'rm' removes an experiment with the\n"
	    "clones that it kept. 'resume' continues an experiment that was interrupted or killed: it\n"
	    "runs what is missing and never promotes twice. --detach works without this terminal;\n"
	    "'wait' shows the result and exits with its code, 'cancel' stops it.\n"
	    "\n"
	    "With --on, the commands of arms run on workers (see `help worker`). Their results come back,\n"
	    "and checks and scores run here.\n"
	    "\n"
	    "'announce N' prepares clones for N arms that are about to begin, as far as memory allows.\n"
	    "An experiment does so by itself for the arms that wait.\n",
	.examples = "experiment --arm a=./a.sh --arm b=./b.sh --check 'make test'\n"
		    "experiment -n faster --arm a=./a.sh --score time:./b --promote-best\n"
		    "experiment --arm flaky='make test' --repeat 50\nexperiment show faster\n"
		    "experiment --arm build='make CC=$cc' --matrix cc=gcc,clang\n",
	.run = experiment_run,
};
