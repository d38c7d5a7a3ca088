/*
 * Scores are taken when all work is done: one run at a time, round by round through all arms, so
 * that a disturbance of the machine disturbs all of them. Where time is measured, a first round
 * warms caches and does not count, and no other experiment of the store measures meanwhile
 * (alone-i.h).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "engine/experiment/alone-i.h"
#include "engine/find/run-record.h"

#define SCORE_MAX     1e15 /* beyond it sums of scores are no longer exact */
#define QUARTILES_MIN 5    /* rounds; those of fewer lie closer together than what is measured */
#define TURN_MS       100  /* between two tries to get the turn */
#define OUTPUT_MAX    ((uint64_t)64 << 10) /* bytes at the end of what it prints */

/* --- the command --------------------------------------------------------------------------- */

static int quote(struct buf *b, const char *word)
{
	int r = buf_append_u8(b, '\'');

	for (; *word != '\0' && r >= 0; word++)
		r = *word == '\'' ? buf_append_str(b, "'\\''") : buf_append_u8(b, (uint8_t)*word);
	return r < 0 ? r : buf_append_u8(b, '\'');
}

/* What is run to know the score of an arm; owned. */
static char *command_of(const struct engine_experiment *x, const struct engine_arm *arm)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	int r = 0;

	if (x->score == ENGINE_SCORE_SIZE) {
		r = buf_append_str(&b, "stat -c %s -- ");
		r = r < 0 ? r : quote(&b, x->score_of);
	} else if (x->score_of) {
		r = buf_append_str(&b, x->score_of);
	} else if (x->n_checks == 0) {
		r = buf_append_str(&b, arm->command);
	}
	for (size_t i = 0; !x->score_of && i < x->n_checks && r >= 0; i++)
		r = buf_printf(&b, "%s{ %s\n}", i > 0 ? " && " : "", x->checks[i]);
	return r >= 0 && buf_str(&b) ? strdup(buf_str(&b)) : NULL;
}

/* --- one round of one arm ------------------------------------------------------------------ */

static int take_output(bool of_stderr, const void *data, size_t len, void *ctx, struct err *err)
{
	return buf_append(ctx, data, len) < 0 ? err_nomem(err) : 0;
}

/* The last line that is a number and nothing else, or begins with one. */
bool score_last_number(char *text, double *ret)
{
	bool found = false;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *end;
		double v = strtod(line, &end);

		if (end != line && fabs(v) <= SCORE_MAX &&
		    (*end == '\0' || strchr(" \t\r", *end))) {
			*ret = v;
			found = true;
		}
	}
	return found;
}

/* 1 if there is a value; 0 if not, and the arm says why. */
static int read_value(struct work *w, struct engine_arm *arm, const struct engine_run *run,
		      double *ret, struct err *err)
{
	const struct engine_log_options log = { .streams = ENGINE_LOG_OUT,
						.last = OUTPUT_MAX,
						.stop_fd = -1 };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int r;

	switch (w->x->score) {
	case ENGINE_SCORE_TIME:
		*ret = (double)run->duration_ms;
		return 1;
	case ENGINE_SCORE_CPU:
		*ret = (double)run->cpu_ms;
		return 1;
	case ENGINE_SCORE_MEM:
		*ret = (double)(run->max_mem > 0 ? run->max_mem : run->max_rss);
		return 1;
	case ENGINE_SCORE_COMMAND:
	case ENGINE_SCORE_SIZE:
	case ENGINE_SCORE_LINES:
	case ENGINE_SCORE_NONE:
		break;
	}
	r = engine_run_log(w->engine, run, &log, take_output, &out, NULL, err);
	if (r < 0)
		return r;
	if (buf_append_u8(&out, '\0') < 0)
		return err_nomem(err);
	if (score_last_number((char *)out.data, ret))
		return 1;
	r = text_set(&arm->why, err, "the score printed no number that is less than 1e15");
	return r < 0 ? r : 0;
}

static int run_once(struct work *w, struct engine_arm *arm, struct engine_run *ret, struct err *err)
{
	const bool on_result = score_is_on_result(w->x);
	AUTO_FREE char *command = command_of(w->x, arm);
	CLEANUP(engine_runs_done) struct engine_runs ended = { 0 };
	const char *ids[] = { arm->now };
	const struct engine_wait_options wait = {
		.ids = ids, .n = 1, .timeout_ms = work_left(w), .stop_fd = w->stop_fd
	};
	int r;

	if (!command)
		return err_nomem(err);
	/* Its clone may have no name to find the run by after a death, so the id is saved first. */
	r = run_record_pick(arm->now, err);
	if (r >= 0)
		r = work_save(w, NULL, err);
	if (r >= 0)
		r = arm_start_run(w, arm, on_result ? arm->judge : NULL,
				  on_result   ? NULL
				  : arm->from ? arm->from
					      : w->x->base,
				  command, err);
	if (r >= 0)
		r = engine_run_wait(w->engine, &wait, &ended, err);
	if (r != 0) {
		CLEANUP(engine_run_done) struct engine_run over = { 0 };

		IGNORE_RESULT(engine_run_cancel(w->engine, arm->now, &over, NULL),
			      "it may have ended");
		return r < 0 ? r : err_set(err, -ETIME, "the time of the whole is up");
	}
	arm->now[0] = '\0';
	*ret = ended.list[0];
	ended.list[0] = (struct engine_run){ 0 };
	return 0;
}

static int fail(struct work *w, struct engine_arm *arm, struct err *err)
{
	arm->state = ENGINE_ARM_UNSCORED;
	arm_release(w, arm, w->x->keep == ENGINE_KEEP_ALL);
	return work_save(w, arm, err);
}

static int add_round(struct engine_arm *arm, double value, const struct company *company,
		     struct err *err)
{
	if (!VEC_ONE_MORE(arm->rounds, arm->n_rounds))
		return err_nomem(err);
	arm->rounds[arm->n_rounds++] = (struct engine_round){ .value = value,
							      .runs = company->runs.n,
							      .tasks = company->tasks };
	return 0;
}

/* 1: see score_take(). */
static int take_one(struct work *w, struct engine_arm *arm, bool counts, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	CLEANUP(company_done) struct company company = { 0 };
	const bool looks = counts && score_is_timed(w->x);
	double value = 0;
	int r = 0;

	if (score_is_on_result(w->x) && !arm->judge)
		r = arm_make_judge(w, arm, err);
	if (r >= 0 && looks)
		r = company_look(w, "", &company, err);
	if (r >= 0)
		r = run_once(w, arm, &run, err);
	if (arm_is_death(r) || (r >= 0 && arm_is_doubtful(w, arm, &run))) {
		r = arm_check_again(w, arm, err);
		return r < 0 ? r : 1;
	}
	if (r < 0)
		return r;
	if (run.state != ENGINE_RUN_ENDED || run.exit_code != 0) {
		r = *run.limit != '\0'
			? text_set(&arm->why, err, "the score met its limit: %s", run.limit)
			: text_set(&arm->why, err, "the score ended with %d", run.exit_code);
		return r < 0 ? r : fail(w, arm, err);
	}
	arm->warmed = true;
	if (!counts)
		return 0;
	r = read_value(w, arm, &run, &value, err);
	if (r < 0)
		return r;
	if (r == 0)
		return fail(w, arm, err);
	r = looks ? company_look(w, run.id, &company, err) : 0;
	if (r < 0)
		return r;
	r = add_round(arm, value, &company, err);
	return r < 0 ? r : work_save(w, arm, err);
}

/* --- all ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const struct engine_round *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/* At a place between the values that are in order: 0 is the first, 1 the last. */
static double quantile(const struct engine_round *sorted, size_t n, double where)
{
	const double at = where * (double)(n - 1);
	const size_t low = (size_t)at;
	const size_t high = low + 1 < n ? low + 1 : low;

	return sorted[low].value + (at - (double)low) * (sorted[high].value - sorted[low].value);
}

int score_sum_up(struct engine_arm *arm, struct err *err)
{
	const size_t n = arm->n_rounds;
	const double tail = n < QUARTILES_MIN ? 0 : 0.25;
	AUTO_FREE struct engine_round *sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted)
		return err_nomem(err);
	if (n == 0)
		return 0;
	memcpy(sorted, arm->rounds, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	arm->score = quantile(sorted, n, 0.5);
	arm->spread = (quantile(sorted, n, 1 - tail) - quantile(sorted, n, tail)) / 2;
	arm->scored = true;
	return 0;
}

static int sum_up_all(struct work *w, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < w->x->n_arms && r >= 0; i++) {
		struct engine_arm *arm = &w->x->arms[i];

		if (arm->state != ENGINE_ARM_PASSED)
			continue;
		r = score_sum_up(arm, err);
		if (r >= 0)
			r = company_warn(arm, err);
		arm_release(w, arm, true);
	}
	return r < 0 ? r : work_save(w, NULL, err);
}

static int take_round(struct work *w, size_t round, bool warms, struct err *err)
{
	const size_t n = w->x->n_arms;
	int r = 0;

	/* Another arm is first in each round. */
	for (size_t i = 0; i < n && r == 0; i++) {
		struct engine_arm *arm = &w->x->arms[(i + round) % n];

		if (arm->state != ENGINE_ARM_PASSED ||
		    (warms ? arm->warmed : arm->n_rounds > round) || losers_beaten_by(w->x, arm))
			continue;
		r = take_one(w, arm, !warms, err);
	}
	return r;
}

/* Say for which one it waits, once for each. */
static int say_waits(struct work *w, const char *holder, struct err *err)
{
	struct work *whole = work_whole(w);
	int r;

	if (*holder == '\0' || (whole->x->waits_for && strcmp(whole->x->waits_for, holder) == 0))
		return 0;
	r = text_set(&whole->x->waits_for, err, "%s", holder);
	if (r < 0)
		return r;
	r = work_save(w, NULL, err);
	if (r < 0)
		return r;
	work_log_event(whole, "experiment-waits", NULL);
	work_tell(w, NULL);
	return 0;
}

static int wait_for_turn(struct work *w, int turn, struct err *err)
{
	char holder[ENGINE_ARM_PATH_SIZE];
	int r;

	while ((r = turn_take(turn, work_whole(w)->x->name, holder, err)) == 0) {
		r = say_waits(w, holder, err);
		if (r < 0)
			return r;
		r = alone_pause(w->stop_fd, TURN_MS, err);
		if (r < 0)
			return r;
		if (work_left(w) == 0)
			r = err_set(err, -ETIME, "the time of the whole is up");
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* Wait until no other experiment of the store measures; then none does until *ret is closed. */
static int take_turn(struct work *w, int *ret, struct err *err)
{
	struct engine_experiment *x = work_whole(w)->x;
	bool waited;
	int r = turn_open(w->engine, ret, err);

	if (r < 0)
		return r;
	r = wait_for_turn(w, *ret, err);
	waited = x->waits_for != NULL;
	free(x->waits_for);
	x->waits_for = NULL;
	if (r >= 0 && waited)
		r = work_save(w, NULL, err);
	if (r >= 0 && waited)
		work_tell(w, NULL);
	return r;
}

/* Is there a round yet to take? */
static bool is_missing(const struct engine_experiment *x)
{
	bool missing = false;

	for (size_t i = 0; i < x->n_arms; i++)
		missing |= x->arms[i].state == ENGINE_ARM_PASSED && x->arms[i].n_rounds < x->rounds;
	return missing;
}

int score_take(struct work *w, struct err *err)
{
	const struct engine_experiment *x = w->x;
	AUTO_CLOSE int turn = -1;
	int r = 0;

	for (size_t i = 0; x->score == ENGINE_SCORE_LINES && i < x->n_arms; i++) {
		struct engine_arm *arm = &x->arms[i];

		if (arm->state != ENGINE_ARM_PASSED)
			continue;
		arm->score = (double)(arm->lines_added + arm->lines_removed);
		arm->scored = true;
	}
	if (!score_is_run(x))
		return 0;
	if (score_is_timed(x) && is_missing(x))
		r = take_turn(w, &turn, err);
	if (r >= 0 && score_is_timed(x))
		r = take_round(w, 0, true, err);
	for (size_t i = 0; i < x->rounds && r == 0; i++)
		r = take_round(w, i, false, err);
	return r != 0 ? r : sum_up_all(w, err);
}
