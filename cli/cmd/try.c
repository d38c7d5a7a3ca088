/*
 * Decisions made beforehand need nobody; otherwise the person at the terminal sees the changes and
 * presses a key. Until then the clone depends on a connection to cowfsd, so whatever ends this
 * process ends the clone with it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/vec.h"
#include "cli/choice.h"
#include "cli/cmd/run-args.h"
#include "cli/cmd/run-root.h"
#include "cli/fail.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/screen.h"
#include "cli/show/conflicts.h"
#include "cli/show/diffs.h"
#include "cli/show/promotions.h"
#include "cli/typed.h"

struct try_args {
	struct run_args run; /* first: RUN_OPTS fill it */
	struct opt_list check, allow;
	const char *conflict, *markers;
	bool promote_if_ok, discard;
};

static const struct opt try_opts[] = {
	OPT_FLAG(0, "promote-if-ok", struct try_args, promote_if_ok,
		 "ask nobody: promote if the command ends with 0, else discard"),
	OPT_FLAG(0, "discard", struct try_args, discard, "ask nobody: discard"),
	OPT_LIST(0, "check", "COMMAND", struct try_args, check,
		 "before a promotion, run it on the merged tree; it must end with 0"),
	OPT_LIST(0, "allow", "PATH", struct try_args, allow, "let PATH pass the guard"),
	OPT_STR(0, "conflict", "HOW", struct try_args, conflict,
		"stop (default), ours, theirs or markers"),
	OPT_STR(0, "markers", "STYLE", struct try_args, markers,
		"merge (default), diff3 or zdiff3"),
	RUN_OPTS,
	OPT_END,
};
_Static_assert(sizeof(struct try_args) <= CMD_ARGS_MAX, "grow CMD_ARGS_MAX");

enum decision { PROMOTED, KEPT, DISCARDED };

struct trying {
	struct invocation *inv;
	const struct try_args *args;
	struct engine_promote_options options;
	struct engine_run run;
	struct engine_waiting *waiting; /* owned */
	struct engine_promotion promotion;
	enum decision decision;
	int signal; /* that ended the question or a check; 0: none */
	int code;   /* of a promotion that did not come about */
};

static void trying_done(struct trying *t)
{
	engine_waiting_free(t->waiting);
	engine_promotion_done(&t->promotion);
	engine_run_done(&t->run);
}

static int check(const struct trying *t, struct err *err)
{
	const struct try_args *args = t->args;
	const int decided = args->promote_if_ok + args->discard + args->run.keep;

	if (t->inv->n_before > 0 && !args->run.root)
		return err_set(
		    err, -EINVAL,
		    "'try' makes a clone of the project, not of '%s': that needs '--root'",
		    t->inv->words[0]);
	if (decided > 1)
		return err_set(err, -EINVAL,
			       "options '--promote-if-ok', '--keep' and '--discard' exclude each "
			       "other");
	if (decided == 0 && !choice_possible(t->inv))
		return err_set(err, -EINVAL,
			       "cannot ask without a terminal: give option '--promote-if-ok', "
			       "'--keep' or '--discard'");
	return 0;
}

/* --- what came of it -------------------------------------------------------------------- */

static bool changed_nothing(const struct engine_run *r)
{
	return r->compared && r->added + r->modified + r->deleted == 0;
}

/* A person who ended the command wants no more questions. */
static bool was_interrupted(const struct engine_run *r)
{
	return r->signal == SIGINT || r->signal == SIGTERM || r->signal == SIGHUP ||
	       r->signal == SIGQUIT;
}

static int keep_clone(struct trying *t, struct err *err)
{
	t->decision = KEPT;
	return engine_waiting_keep(t->waiting, err);
}

static int discard(struct trying *t, struct err *err)
{
	t->decision = DISCARDED;
	t->run.removed = true;
	return engine_waiting_discard(t->waiting, err);
}

/* For an answer that is printed again. */
static void drop_hints(struct invocation *inv)
{
	while (inv->n_hints > 0)
		free(inv->hints[--inv->n_hints]);
}

/* The promotion left out what the project has and nobody could read, so only the clone has the command's. */
static bool is_all_promoted(const struct engine_promotion *p)
{
	return !VEC_HAS(it, p->left, p->n_left, it->why);
}

/* What the command made is not lost with its promotion. */
static void keep_after_failure(struct trying *t)
{
	struct err why = { 0 };

	if (keep_clone(t, &why) < 0)
		log_warn("clone '%s' is not kept: %s", t->run.clone, why.msg);
	else
		cmd_hint_words(t->inv, "promote", (const char *[]){ t->run.clone, NULL });
}

/* 1 if it was promoted; 0 if something stopped it, which is printed, and the code is set. */
static int promote(struct trying *t, struct err *err)
{
	struct engine_promotion *p = &t->promotion;
	int r;

	engine_promotion_done(p);
	drop_hints(t->inv);
	t->options.clone = t->run.clone;
	r = engine_promote(t->inv->engine, &t->options, p, err);
	progress_done(t->inv->progress);
	if (r < 0) {
		keep_after_failure(t);
		return r;
	}
	if (p->end == ENGINE_PROMOTED && t->inv->json)
		t->code = CMD_OK;
	else
		t->code = promotions_tell(t->inv, p, err);
	if (p->end != ENGINE_PROMOTED || t->code < 0)
		return t->code < 0 ? t->code : 0;
	r = is_all_promoted(p) ? discard(t, err) : keep_clone(t, err);
	t->decision = PROMOTED;
	if (!is_all_promoted(p))
		cmd_hint_words(t->inv, "diff", (const char *[]){ t->run.clone, NULL });
	return r < 0 ? r : 1;
}

/* If cowfsd died before it reported the end, the clone may hold a part of what was written. */
static int discard_unknown(struct trying *t, struct err *err)
{
	int r = discard(t, err);

	return r < 0
		   ? r
		   : err_set(err, -ECONNRESET,
			     "nothing is promoted: cowfsd ended before it told what '%s' changed, "
			     "and some of that may be lost",
			     t->run.argv.list[0]);
}

/* Nobody is there to be asked what then: the hints name the clone, so it stays. */
static int promote_or_keep(struct trying *t, struct err *err)
{
	int r;

	if (!t->run.compared)
		return discard_unknown(t, err);
	r = promote(t, err);
	return r != 0 ? r : keep_clone(t, err);
}

/* --- asking ----------------------------------------------------------------------------- */

static void print_outcome(const struct trying *t)
{
	const struct invocation *inv = t->inv;
	const struct engine_run *r = &t->run;

	if (r->exit_code != 0)
		fprintf(inv->out, "%sthe command ended with %d%s\n", out_style(inv, OUT_BAD),
			r->exit_code, out_style(inv, OUT_PLAIN));
	if (changed_nothing(r))
		return;
	out_plural(inv->out, r->added + r->modified + r->deleted, "path", "paths");
	fprintf(inv->out, " changed: %llu added, %llu modified, %llu deleted\n",
		(unsigned long long)r->added, (unsigned long long)r->modified,
		(unsigned long long)r->deleted);
}

/* What a promotion would meet, as far as we know now: a person decides by it. */
static void print_prospect(struct trying *t)
{
	CLEANUP(engine_promotion_done) struct engine_promotion p = { 0 };
	struct engine_promote_options options = t->options;
	struct err err = { 0 };

	options.clone = t->run.clone;
	options.dry_run = true;
	if (engine_promote(t->inv->engine, &options, &p, &err) < 0)
		log_warn("cannot preview the promotion: %s, continuing", err.msg);
	else
		promotions_print_obstacles(t->inv, &p);
	progress_done(t->inv->progress);
}

static int ask(struct trying *t, struct err *err)
{
	const struct invocation *inv = t->inv;
	char question[160];
	int r = 0;

	snprintf(question, sizeof(question), "%sp%s promote  %sk%s keep  %sd%s discard? ",
		 out_style(inv, OUT_BOLD), out_style(inv, OUT_PLAIN), out_style(inv, OUT_BOLD),
		 out_style(inv, OUT_PLAIN), out_style(inv, OUT_BOLD), out_style(inv, OUT_PLAIN));
	while (r == 0) {
		switch (choice_ask(inv, question, "pkd", 'd', &t->signal)) {
		case 'p':
			fputs("promote\n", inv->out);
			r = promote(t, err);
			break;
		case 'k':
			fputs("keep\n", inv->out);
			r = keep_clone(t, err);
			return r;
		default:
			fputs("discard\n", inv->out);
			return discard(t, err);
		}
	}
	return r;
}

static int show_and_ask(struct trying *t, struct err *err)
{
	const struct diffs_options options = { .a = t->run.clone, .context = DIFFS_CONTEXT };
	bool different;
	int r = diffs_print(t->inv, &options, &different, err);

	if (r < 0)
		return r;
	print_outcome(t);
	if (changed_nothing(&t->run)) {
		fputs("nothing changed\n", t->inv->out);
		return discard(t, err);
	}
	print_prospect(t);
	return ask(t, err);
}

static int decide(struct trying *t, struct err *err)
{
	const struct try_args *args = t->args;

	if (was_interrupted(&t->run) && !args->run.keep)
		return discard(t, err);
	if (args->run.keep)
		return keep_clone(t, err);
	if (args->discard || (args->promote_if_ok && t->run.exit_code != 0))
		return discard(t, err);
	return args->promote_if_ok ? promote_or_keep(t, err) : show_and_ask(t, err);
}

/* --- telling ---------------------------------------------------------------------------- */

static int decide_json(struct trying *t, struct err *err)
{
	static const char *const names[] = {
		[PROMOTED] = "promoted",
		[KEPT] = "kept",
		[DISCARDED] = "discarded",
	};
	const struct diffs_options options = { .a = t->run.clone,
					       .context = DIFFS_CONTEXT,
					       .patch = true };
	CLEANUP(json_done) struct json_doc doc = { 0 };
	struct json j = out_json_begin(t->inv, &doc), part = json_set_object(j, "diff");
	bool different;
	int r = diffs_set_json(t->inv, &options, part, &different, err);

	if (r < 0)
		return r;
	r = decide(t, err);
	if (r < 0 || t->code > 0)
		return r;
	run_set_json(j, &t->run);
	json_set_text(j, "decision", names[t->decision]);
	if (t->decision == PROMOTED)
		promotions_set_json(json_set_object(j, "promotion"), &t->promotion);
	else
		json_set_null(j, "promotion");
	return json_print(&doc, t->inv->out, err);
}

/* Standard output is the command's, unless somebody looks at both. */
static int decide_for_people(struct trying *t, struct err *err)
{
	struct invocation *inv = t->inv;
	FILE *out = inv->out;
	int r;

	if (t->args->run.tty)
		screen_reset(inv);
	run_tell(inv, &t->run);
	if (!choice_possible(inv))
		inv->out = stderr;
	r = decide(t, err);
	if (r >= 0 && t->decision == KEPT && !inv->quiet)
		run_tell_kept(inv, inv->out, &t->run);
	inv->out = out;
	return r;
}

static int check_line(struct trying *t, struct err *err)
{
	int r = conflicts_read_ways(t->args->conflict, t->args->markers, &t->options.on_conflict,
				    &t->options.style, err);

	if (r < 0)
		return r;
	r = run_check(t->inv, err);
	return r < 0 ? r : check(t, err);
}

static int try_run(struct invocation *inv, struct err *err)
{
	CLEANUP(trying_done) struct trying t = { .inv = inv, .args = inv->args };
	CLEANUP(typed_done) struct typed allow = { 0 };
	struct engine_run_limits limits;
	int r;

	t.options = (struct engine_promote_options){
		.checks = { t.args->check.items, t.args->check.n },
		.profile = t.args->run.profile,
		.limits = &limits,
		.skip_unreadable = t.args->run.skip_unreadable,
		.watch = progress_watch(inv->progress),
		.checking = promotions_on_check,
		.checking_ctx = inv,
		.ret_signal = &t.signal,
	};
	r = run_read_bare(inv, err);
	r = r < 0 ? r : run_root_read_profile(inv, err);
	if (r < 0)
		return r;
	engine_run_limits_init(&limits);
	limits.mem = t.args->run.mem;
	limits.time_ms = t.args->run.time;
	r = typed_read(&allow, &t.args->allow, err);
	if (r < 0)
		return r;
	t.options.allow = typed_list(&allow);
	r = check_line(&t, err);
	if (r < 0) {
		cmd_hint(inv, "help try");
		return r;
	}
	r = run_go(inv, &t.waiting, &t.run, err);
	if (r < 0 && t.run.state == ENGINE_RUN_REFUSED)
		return fail_sandbox(inv, err);
	if (r == -EPIPE && t.run.state == ENGINE_RUN_ENDED)
		return t.run.exit_code;
	inv->ran = r >= 0;
	if (r < 0)
		return r;
	r = inv->json ? decide_json(&t, err) : decide_for_people(&t, err);
	if (r == -EINTR)
		return fail_interrupted(inv, t.signal, err);
	if (r < 0)
		return r;
	/* ^C is one of the keys. */
	if (t.signal > 0 && t.signal != SIGINT)
		return 128 + t.signal;
	return t.run.exit_code != 0 ? t.run.exit_code : t.code;
}

const struct command cmd_try = {
	.name = "try",
	.group = "Runs",
	.summary = "run a command on a throw-away clone, then promote, keep or discard",
	.words = "[ROOT --] COMMAND...",
	.max_words = 1,
	.takes_rest = true,
	.takes_command = true,
	.leaves_clone = true,
	.opts = try_opts,
	.preset = run_preset,
	.details =
	    "Runs the command as `run` does, on a throw-away clone of the project. Then it shows\n"
	    "what changed, and a key decides: p promotes, k keeps the clone; d, Enter, ^C or the\n"
	    "end of the input discard it. Where nobody can answer, give --promote-if-ok, --keep\n"
	    "or --discard. Whatever ends this command before the decision discards the clone.\n"
	    "\n"
	    "With --root it is a clone of this machine, or of ROOT: a clone, a directory with a\n"
	    "slash in its name, or an image.\n"
	    "\n"
	    "Exits with the command's own code if that is not 0, else as `promote` does. If\n"
	    "something stops the promotion, the clone is kept.\n",
	.examples =
	    "try npx prettier --write .\ntry --promote-if-ok --check 'make test' -- ./fix.sh\n"
	    "try --json --discard -- make\n",
	.run = try_run,
};
