/*
 * One arm: its clone, the run of its command, a snapshot of the result, and the checks, which run
 * on a clone of that snapshot.
 *
 * The state is saved before a run is started, with the clone it runs on and the time. A resumed
 * experiment finds the run by these two, whether or not its maker lived to learn the run's id.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/experiment/experiment-i.h"

#define ATTEMPTS_MAX 3

/* --- runs ---------------------------------------------------------------------------------- */

static int join_env(const struct work *w, const struct engine_arm *arm, const char ***ret,
		    size_t *ret_n, struct err *err)
{
	const struct engine_experiment *x = w->x;
	const char **all = calloc(x->n_env + arm->n_env + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return err_nomem(err);
	for (size_t i = 0; i < x->n_env; i++)
		all[n++] = x->env[i];
	for (size_t i = 0; i < arm->n_env; i++)
		all[n++] = arm->env[i];
	*ret = all;
	*ret_n = n;
	return 0;
}

static struct engine_list list_of(char *const *items, size_t n)
{
	return (struct engine_list){ .items = (const char *const *)items, .n = n };
}

int arm_start_run(struct work *w, struct engine_arm *arm, const char *clone, const char *from,
		  const char *command, struct err *err)
{
	const struct engine_experiment *x = w->x;
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	AUTO_FREE const char **env = NULL;
	struct engine_run_options options = {
		.id = *arm->now != '\0' ? arm->now : NULL,
		.clone = clone,
		.from = from,
		.argv = argv,
		.profile = arm->profile ? arm->profile : x->profile,
		.limits = x->limits,
		.net = x->net,
		.workdir = x->cwd,
		.ro = list_of(x->ro, x->n_ro),
		.pass_env = list_of(x->pass_env, x->n_pass_env),
		.allow_missing = list_of(x->allow_missing, x->n_allow_missing),
		.no_snapshot = true,
		.ttl_ms = ENGINE_UNSAID,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
	};
	int r = join_env(w, arm, &env, &options.env.n, err);

	if (r < 0)
		return r;
	options.env.items = env;
	r = arm_is_elsewhere(w, arm) ? arm_on_start(w, arm, &options, &run, err)
				     : engine_run_start(w->engine, &options, &run, err);
	if (r < 0)
		return r;
	memcpy(arm->now, run.id, sizeof(arm->now));
	return 0;
}

/* Save the step that is about to begin, then start its run. */
static int start_step(struct work *w, struct engine_arm *arm, const char *clone,
		      const char *command, struct err *err)
{
	int r;

	arm->now[0] = '\0';
	arm->begun = engine_now();
	r = work_save(w, arm, err);
	return r < 0 ? r : arm_start_run(w, arm, clone, NULL, command, err);
}

static void forget_checks(struct engine_arm *arm)
{
	for (size_t i = 0; i < arm->n_checks; i++)
		free(arm->checks[i].command);
	arm->n_checks = 0;
}

int arm_try_again(struct work *w, struct engine_arm *arm, const char *why, struct err *err)
{
	int r;

	inner_interrupt(w, arm);
	arm_release(w, arm, false);
	inner_forget(arm);
	forget_checks(arm);
	arm->now[0] = arm->result[0] = '\0';
	arm->state = arm->attempts < ATTEMPTS_MAX ? ENGINE_ARM_WAITING : ENGINE_ARM_LOST;
	if (arm->state == ENGINE_ARM_LOST) {
		r = text_set(&arm->why, err, "given up after %d attempts: %s", ATTEMPTS_MAX, why);
		if (r < 0)
			return r;
	}
	return work_save(w, arm, err);
}

static int begin(struct work *w, struct engine_arm *arm, struct err *err)
{
	char base[ENGINE_ID_SIZE];
	int r;

	arm->now[0] = '\0';
	arm->begun = engine_now();
	r = after_start(w, arm, err);
	if (r >= 0)
		r = arm_make_clone(w, arm, base, err);
	if (r < 0)
		return r;
	/* All arms start from what the first one did, also after a death of ours. */
	if (!arm->from && *w->x->base == '\0') {
		memcpy(w->x->base, w->x->from ? w->x->from : base, sizeof(base));
		r = work_save(w, NULL, err);
		if (r < 0)
			return r;
	}
	work_tell(w, arm);
	if (!arm->command)
		return inner_begin(w, arm, err);
	r = arm_on_send(w, arm, err);
	if (r > 0)
		r = work_save(w, NULL, err);
	return r < 0 ? r : arm_start_run(w, arm, arm->clone, NULL, arm->command, err);
}

int arm_begin(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r;

	arm->state = ENGINE_ARM_RUNNING;
	arm->attempts++;
	r = begin(w, arm, err);
	if (r < 0 && arm_is_death(r))
		return arm_try_again(w, arm, err->msg, err);
	return r < 0 ? err_wrap(err, r, "arm '%s'", arm->name) : 0;
}

/* --- after the command --------------------------------------------------------------------- */

int arm_fail(struct work *w, struct engine_arm *arm, enum engine_arm_state state, struct err *err)
{
	arm->state = state;
	arm_release(w, arm, w->x->keep == ENGINE_KEEP_ALL);
	return work_save(w, arm, err);
}

static void take_run(struct engine_arm *arm, const struct engine_run *run)
{
	memcpy(arm->run, run->id, sizeof(arm->run));
	memcpy(arm->limit, run->limit, sizeof(arm->limit));
	arm->exit_code = run->exit_code;
	arm->duration_ms = run->duration_ms;
	arm->cpu_ms = run->cpu_ms;
	arm->max_mem = run->max_mem > 0 ? run->max_mem : run->max_rss;
	arm->added = run->added;
	arm->modified = run->modified;
	arm->deleted = run->deleted;
}

/* How far its command came, which was ended. */
static void take_ended(struct work *w, struct engine_arm *arm, const char *id)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };

	if (engine_run_find(w->engine, id, &run, NULL) < 0)
		return;
	take_run(arm, &run);
	arm_look_at_failed(w, arm);
}

int arm_stop(struct work *w, struct engine_arm *arm, const char *why, struct err *err)
{
	char id[ENGINE_RUN_ID_SIZE] = "";
	int r = text_set(&arm->why, err, "%s", why);

	if (r >= 0)
		r = inner_stop(w, arm, why, err);
	if (r < 0)
		return r;
	if (arm->state == ENGINE_ARM_RUNNING)
		memcpy(id, arm->now, sizeof(id));
	arm_interrupt(w, arm);
	if (*id != '\0')
		take_ended(w, arm, id);
	return arm_fail(w, arm, ENGINE_ARM_STOPPED, err);
}

static int explain_end(struct engine_arm *arm, const char *what, const struct engine_run *run,
		       struct err *err)
{
	const char *on = run->machine.worker ? " on " : "";
	const char *worker = run->machine.worker ? run->machine.worker : "";

	if (*run->limit != '\0')
		return text_set(&arm->why, err, "%s met its limit%s%s: %s", what, on, worker,
				run->limit);
	if (run->problem)
		return text_set(&arm->why, err, "%s%s%s: %s", what, on, worker, run->problem);
	if (run->signal != 0)
		return text_set(&arm->why, err, "%s was killed by signal %d%s%s", what, run->signal,
				on, worker);
	if (run->state == ENGINE_RUN_CANCELLED)
		return text_set(&arm->why, err, "%s was cancelled%s%s", what, on, worker);
	return text_set(&arm->why, err, "%s ended with %d%s%s", what, run->exit_code, on, worker);
}

static bool is_cut(const struct engine_run *run)
{
	return *run->limit != '\0' && strcmp(run->limit, "output") != 0;
}

/* It left what the arm before it did, and would promote that. */
static int take_over(struct work *w, struct engine_arm *arm, struct err *err)
{
	snprintf(arm->result, sizeof(arm->result), "%s", arm->from);
	return arm_look(w, arm, err);
}

int arm_keep(struct work *w, struct engine_arm *arm, struct err *err)
{
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	char message[80];
	const struct engine_take_options options = { .clone = arm->clone, .message = message };
	int r;

	snprintf(message, sizeof(message), "experiment %s: %s", w->x->name, arm->name);
	r = engine_take(w->engine, &options, &taken, err);
	if (r < 0)
		return r;
	if (arm_lost_daemon(w, arm))
		return err_set(err, -ECONNRESET, "cowfsd died before what it left was stored");
	memcpy(arm->result, taken.snapshot.id, sizeof(arm->result));
	return arm_look(w, arm, err);
}

/* What the command left, if it changed anything. */
static int keep_result(struct work *w, struct engine_arm *arm, struct err *err)
{
	if (arm->added + arm->modified + arm->deleted > 0)
		return arm_keep(w, arm, err);
	return arm->after && arm->from ? take_over(w, arm, err) : 0;
}

static int pass(struct work *w, struct engine_arm *arm, struct err *err)
{
	arm->state = ENGINE_ARM_PASSED;
	if (!score_needs_judge(w->x))
		arm_release(w, arm, true);
	if (arm->group && w->x->keep != ENGINE_KEEP_ALL && w->x->keep != ENGINE_KEEP_PASSED)
		arm_release(w, arm, false);
	return work_save(w, arm, err);
}

static int next_check(struct work *w, struct engine_arm *arm, struct err *err)
{
	if (arm->n_checks == w->x->n_checks)
		return pass(w, arm, err);
	return start_step(w, arm, arm->judge, w->x->checks[arm->n_checks], err);
}

static int begin_checks(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r;

	if (w->x->n_checks == 0)
		return pass(w, arm, err);
	arm->state = ENGINE_ARM_CHECKING;
	r = arm_make_judge(w, arm, err);
	return r < 0 ? r : next_check(w, arm, err);
}

static enum engine_arm_state failure_of(const struct engine_run *run)
{
	return run->machine.lost ? ENGINE_ARM_LOST
	       : is_cut(run)     ? ENGINE_ARM_LIMIT
				 : ENGINE_ARM_FAILED;
}

/* Checks of arms that ran elsewhere begin when this machine has room for them (work.c). */
static int judge(struct work *w, struct engine_arm *arm, struct err *err)
{
	if (!w->x->on.queue || w->x->n_checks == 0)
		return begin_checks(w, arm, err);
	arm->state = ENGINE_ARM_CHECKING;
	return work_save(w, arm, err);
}

static int end_command(struct work *w, struct engine_arm *arm, const struct engine_run *run,
		       struct err *err)
{
	int r;

	take_run(arm, run);
	r = arm_on_take(arm, run, err);
	if (r < 0)
		return r;
	if (is_cut(run) || run->machine.lost || run->exit_code != 0) {
		arm_look_at_failed(w, arm);
		r = explain_end(arm, "the command", run, err);
		return r < 0 ? r : arm_fail(w, arm, failure_of(run), err);
	}
	r = keep_result(w, arm, err);
	if (r < 0)
		return r;
	return arm->n_inner > 0 ? inner_begin(w, arm, err) : judge(w, arm, err);
}

static int end_check(struct work *w, struct engine_arm *arm, const struct engine_run *run,
		     struct err *err)
{
	struct engine_checked *c;
	char what[120];
	int r;

	if (!VEC_ONE_MORE(arm->checks, arm->n_checks))
		return err_nomem(err);
	c = &arm->checks[arm->n_checks];
	*c = (struct engine_checked){
		.command = strdup(w->x->checks[arm->n_checks]),
		.exit_code = run->exit_code,
		.duration_ms = run->duration_ms,
	};
	memcpy(c->run, run->id, sizeof(c->run));
	arm->n_checks++;
	if (!c->command)
		return err_nomem(err);
	if (run->exit_code == 0 && !is_cut(run))
		return next_check(w, arm, err);
	snprintf(what, sizeof(what), "check '%.80s'", c->command);
	r = explain_end(arm, what, run, err);
	return r < 0 ? r : arm_fail(w, arm, ENGINE_ARM_CHECK_FAILED, err);
}

/* Of a run whose end cowfsd did not live to tell, some of what it wrote may be missing. */
static bool is_lost(const struct engine_run *run)
{
	return run->state == ENGINE_RUN_LOST || (run->state == ENGINE_RUN_ENDED && !run->compared);
}

bool arm_is_doubtful(struct work *w, const struct engine_arm *arm, const struct engine_run *run)
{
	return is_lost(run) || arm_lost_daemon(w, arm);
}

int arm_advance(struct work *w, struct engine_arm *arm, const struct engine_run *run,
		struct err *err)
{
	const bool checks = arm->state == ENGINE_ARM_CHECKING;
	int r;

	arm->now[0] = '\0';
	if (run->state != ENGINE_RUN_REFUSED && arm_is_doubtful(w, arm, run))
		return arm_try_again(w, arm, run->problem ? run->problem : "the run was lost", err);
	if (run->state == ENGINE_RUN_REFUSED)
		return err_set(err, run->machine.distrusted ? -ECANCELED : -ENOTSUP, "arm '%s': %s",
			       arm->name,
			       run->problem ? run->problem : "the sandbox could not be set up");
	r = checks ? end_check(w, arm, run, err) : end_command(w, arm, run, err);
	if (r < 0 && arm_is_death(r))
		return arm_try_again(w, arm, err->msg, err);
	return r < 0 ? err_wrap(err, r, "arm '%s'", arm->name) : 0;
}

/* --- after a death of ours ----------------------------------------------------------------- */

static void cancel_on(struct work *w, const char *clone, int64_t since, const char *but)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const struct engine_runs_options options = { .clone = clone, .running = true };
	struct err err = { 0 };

	if (engine_runs(w->engine, &options, &runs, &err) < 0)
		return;
	for (size_t i = 0; i < runs.n; i++) {
		CLEANUP(engine_run_done) struct engine_run ended = { 0 };

		if (runs.list[i].started < since || strcmp(runs.list[i].id, but) == 0)
			continue;
		if (engine_run_cancel(w->engine, runs.list[i].id, &ended, &err) < 0)
			log_warn("run %s: %s, continuing", runs.list[i].id, err.msg);
	}
}

void arm_interrupt(struct work *w, struct engine_arm *arm)
{
	CLEANUP(engine_run_done) struct engine_run ended = { 0 };

	/* One that measures may be on a clone without a name. */
	if (*arm->now != '\0')
		IGNORE_RESULT(engine_run_cancel(w->engine, arm->now, &ended, NULL),
			      "it may have ended");
	/* What it used was used; if it is resumed, its own end says how much in all. */
	arm->cpu_ms += ended.cpu_ms;
	if (arm->has_clone)
		cancel_on(w, arm->clone, w->x->created, "");
	if (arm->judge)
		cancel_on(w, arm->judge, w->x->created, "");
	arm->now[0] = '\0';
	inner_interrupt(w, arm);
}

/* Others may have run something of theirs in the clone since, to look at it. */
static bool is_command_of(const struct engine_arm *arm, const struct engine_run *run)
{
	const struct strlist *argv = &run->argv; /* a profile may have put words before it */

	return arm->command && argv->n >= 3 &&
	       (run->asked.scrubbed || strcmp(argv->list[argv->n - 1], arm->command) == 0);
}

/* The run of the command, if one was started, whether or not it has ended; "": none. */
static int find_run(struct work *w, const struct engine_arm *arm, char ret[ENGINE_RUN_ID_SIZE],
		    struct err *err)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const struct engine_runs_options options = { .clone = arm->clone };
	int r = engine_runs(w->engine, &options, &runs, err);

	ret[0] = '\0';
	if (r < 0)
		return r;
	for (size_t i = 0; i < runs.n; i++) {
		const struct engine_run *run = &runs.list[i];

		if (run->started >= arm->begun && is_command_of(arm, run) &&
		    run->state != ENGINE_RUN_LOST && run->state != ENGINE_RUN_CANCELLED &&
		    run->state != ENGINE_RUN_REFUSED)
			memcpy(ret, run->id, ENGINE_RUN_ID_SIZE);
	}
	return 0;
}

/* What the command left is a snapshot; its checks begin anew. */
static int recover_checks(struct work *w, struct engine_arm *arm, struct err *err)
{
	if (arm->judge)
		cancel_on(w, arm->judge, w->x->created, "");
	arm_release(w, arm, true);
	forget_checks(arm);
	return judge(w, arm, err);
}

int arm_check_again(struct work *w, struct engine_arm *arm, struct err *err)
{
	arm_interrupt(w, arm);
	arm_release(w, arm, true);
	arm_note_daemon(w, arm);
	arm->warmed = false;
	if (arm->attempts++ >= ATTEMPTS_MAX) {
		arm->state = ENGINE_ARM_LOST;
		return text_set(&arm->why, err, "given up after %d attempts to measure it",
				ATTEMPTS_MAX);
	}
	if (w->x->n_checks > 0) {
		forget_checks(arm);
		arm->state = ENGINE_ARM_CHECKING;
		w->x->state = ENGINE_EXPERIMENT_RUNNING;
	}
	return work_save(w, NULL, err);
}

int arm_begin_checks(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r = begin_checks(w, arm, err);

	if (r < 0 && arm_is_death(r))
		return arm_try_again(w, arm, err->msg, err);
	return r < 0 ? err_wrap(err, r, "arm '%s'", arm->name) : 0;
}

int arm_recover(struct work *w, struct engine_arm *arm, struct err *err)
{
	int r;

	/* What is inside was decided before the arm could go on. */
	if (arm->n_inner > 0 && arm->state > ENGINE_ARM_RUNNING && w->x->keep != ENGINE_KEEP_ALL)
		inner_release(w, arm);
	if (arm->state == ENGINE_ARM_CHECKING && engine_has_clone(w->engine, arm->clone))
		return recover_checks(w, arm, err);
	if (arm->state != ENGINE_ARM_RUNNING && arm->state != ENGINE_ARM_CHECKING)
		return 0;
	r = inner_is_under_way(arm) ? inner_recover(w, arm, err) : 1;
	if (r <= 0)
		return r;
	r = find_run(w, arm, arm->now, err);
	if (r < 0)
		return r;
	if (arm->state == ENGINE_ARM_RUNNING && *arm->now != '\0' &&
	    engine_has_clone(w->engine, arm->clone))
		return 0;
	arm_interrupt(w, arm);
	arm_release(w, arm, false);
	inner_forget(arm);
	forget_checks(arm);
	arm->result[0] = '\0';
	arm->state = ENGINE_ARM_WAITING;
	arm->attempts = 0;
	return 0;
}
