/*
 * The runs are detached, one process each, so that several are at work at once; they are cancelled
 * when another verdict makes theirs needless, and when this ends early.
 */
#include "engine/api/bisect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/api/service.h"
#include "engine/experiment/bisect-i.h"

#define SKIP     125
#define LOST_MAX 3 /* runs that are made again */

/* One run of a step. */
struct probe {
	size_t at; /* in the list */
	char run[ENGINE_RUN_ID_SIZE];
	int64_t cowfsd; /* when the one that has its clone began */
	bool over;
};

struct step {
	struct bisecting *b;
	struct probe list[ENGINE_BISECT_JOBS_MAX];
	size_t n;
};

static void bisecting_done(struct bisecting *b)
{
	cleanup_close(&b->log_fd);
	engine_bisect_done(&b->result);
}

/* --- what is left ----------------------------------------------------------------------- */

/* The first bad one, and the last good one before it. */
static void narrow(struct engine_bisect *b)
{
	b->bad = b->good = 0;
	while (b->list[b->bad].verdict != ENGINE_BAD)
		b->bad++;
	for (size_t i = 0; i < b->bad; i++)
		if (b->list[i].verdict == ENGINE_GOOD)
			b->good = i;
	for (size_t i = b->bad + 1; i < b->n; i++)
		b->unsteady |= b->list[i].verdict == ENGINE_GOOD;
}

static bool is_open(const struct engine_bisect *b, size_t i)
{
	return i > b->good && i < b->bad && b->list[i].verdict == ENGINE_UNTRIED;
}

/* The untried state that is nearest to `at`; 0: there is none. */
static size_t nearest(const struct engine_bisect *b, const struct step *s, size_t at)
{
	for (size_t d = 0; d < b->bad - b->good; d++)
		for (int side = 0; side < 2; side++) {
			const size_t i = side == 0 ? at + d : at - d;
			bool taken = false;

			if ((side == 1 && d > at) || !is_open(b, i))
				continue;
			for (size_t k = 0; k < s->n; k++)
				taken |= s->list[k].at == i;
			if (!taken)
				return i;
		}
	return 0;
}

/* `jobs` states that leave jobs + 1 parts of the same size. */
static void choose(struct step *s)
{
	const struct engine_bisect *b = &s->b->result;
	const size_t jobs = s->b->options->jobs, left = b->bad - b->good;

	for (size_t i = 1; i <= jobs; i++) {
		const size_t at = b->good + left * i / (jobs + 1);
		const size_t found = nearest(b, s, at > b->good ? at : b->good + 1);

		if (found > 0)
			s->list[s->n++] = (struct probe){ .at = found };
	}
}

/* --- running ---------------------------------------------------------------------------- */

/* Git's own words are not the command's; hooks of the repository are not for us. */
#define CHECKOUT                                                                                   \
	"git -c core.hooksPath=/dev/null checkout -q -f --detach \"$0\" > /dev/null || exit 125\n" \
	"exec \"$@\""

static int start(struct step *s, struct probe *p, struct err *err)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	AUTO_FREE const char **argv = NULL;
	struct bisecting *b = s->b;
	struct engine_run_options options = *b->options->run;
	struct engine_bisect_state *state = &b->result.list[p->at];
	struct engine_service cowfsd;
	bool started;
	size_t n = 0;
	int r;

	options.from = state->id;
	if (b->result.git) {
		while (options.argv[n])
			n++;
		argv = calloc(n + 5, sizeof(*argv));
		if (!argv)
			return err_nomem(err);
		argv[0] = "sh";
		argv[1] = "-c";
		argv[2] = CHECKOUT;
		argv[3] = state->id;
		memcpy(&argv[4], options.argv, n * sizeof(*argv));
		options.argv = argv;
		options.from = b->from;
	}
	r = engine_start(b->engine, &cowfsd, &started, err);
	if (r < 0)
		return r;
	p->cowfsd = cowfsd.began;
	r = engine_run_start(b->engine, &options, &run, err);
	memcpy(p->run, run.id, sizeof(p->run));
	return r;
}

static void cancel(struct step *s, struct probe *p)
{
	CLEANUP(engine_run_done) struct engine_run run = { 0 };
	struct err why = { 0 };

	if (p->over || p->run[0] == '\0')
		return;
	p->over = true;
	if (engine_run_cancel(s->b->engine, p->run, &run, &why) < 0)
		log_warn("cancelling run %s: %s, continuing", p->run, why.msg);
}

static void cancel_all(struct step *s)
{
	const char *ids[ENGINE_BISECT_JOBS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (!s->list[i].over && s->list[i].run[0] != '\0')
			ids[n++] = s->list[i].run;
	engine_run_cancel_all(s->b->engine, ids, n);
	for (size_t i = 0; i < s->n; i++)
		cancel(s, &s->list[i]);
}

/* A command whose files died with cowfsd says nothing about the state. */
static bool is_lost(const struct step *s, const struct probe *p, const struct engine_run *run)
{
	struct engine_service cowfsd;

	return run->state == ENGINE_RUN_LOST ||
	       (run->state == ENGINE_RUN_ENDED &&
		(engine_service(s->b->engine, &cowfsd, NULL) < 0 || cowfsd.began != p->cowfsd));
}

static int judge(struct step *s, struct probe *p, const struct engine_run *run, struct err *err)
{
	struct engine_bisect *res = &s->b->result;
	struct engine_bisect_state *state = &res->list[p->at];
	int r;

	p->over = true;
	if (is_lost(s, p, run) && s->b->lost++ < LOST_MAX) {
		log_warn("run %s was lost, and is made again", p->run);
		return 0;
	}
	if (run->state == ENGINE_RUN_REFUSED || is_lost(s, p, run))
		return err_set(err, -EIO, "run %s %s%s%s", p->run,
			       run->state != ENGINE_RUN_REFUSED ? "was lost" : "was refused",
			       run->problem ? ": " : "", run->problem ? run->problem : "");
	if (run->state != ENGINE_RUN_ENDED)
		return err_set(err, -ECANCELED, "run %s was ended by somebody else", p->run);
	if (run->problem)
		return err_set(err, -ENOEXEC, "%s", run->problem);
	state->verdict = run->exit_code == 0      ? ENGINE_GOOD
			 : run->exit_code == SKIP ? ENGINE_SKIPPED
						  : ENGINE_BAD;
	state->step = res->steps;
	state->exit_code = run->exit_code;
	state->duration_ms = run->duration_ms;
	memcpy(state->run, p->run, sizeof(state->run));
	res->runs++;
	r = bisect_write_log(s->b, state, err);
	if (r >= 0 && s->b->options->tried)
		s->b->options->tried(state, s->b->options->ctx);
	return r;
}

/* Wait for one more verdict at least; 0 when all are there. */
static int wait_for_some(struct step *s, struct err *err)
{
	CLEANUP(engine_runs_done) struct engine_runs runs = { 0 };
	const char *ids[ENGINE_BISECT_JOBS_MAX];
	struct probe *of[ENGINE_BISECT_JOBS_MAX];
	struct engine_wait_options options = {
		.ids = ids,
		.any = true,
		.timeout_ms = ENGINE_UNSAID,
		.stop_fd = s->b->options->stop_fd,
	};
	int r;

	for (size_t i = 0; i < s->n; i++) {
		if (s->list[i].over)
			continue;
		of[options.n] = &s->list[i];
		ids[options.n++] = s->list[i].run;
	}
	if (options.n == 0)
		return 0;
	r = engine_run_wait(s->b->engine, &options, &runs, err);
	for (size_t i = 0; i < runs.n && r >= 0; i++)
		if (runs.list[i].state != ENGINE_RUN_RUNNING)
			r = judge(s, of[i], &runs.list[i], err);
	return r < 0 ? r : 1;
}

/* What lies behind a bad one, or before a good one, decides nothing any more. */
static void cancel_needless(struct step *s)
{
	const struct engine_bisect *b = &s->b->result;

	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].at < b->good || s->list[i].at > b->bad)
			cancel(s, &s->list[i]);
}

static int run_step(struct step *s, struct err *err)
{
	int r = 0;

	s->b->result.steps++;
	for (size_t i = 0; i < s->n && r >= 0; i++)
		r = start(s, &s->list[i], err);
	while (r >= 0 && (r = wait_for_some(s, err)) > 0) {
		narrow(&s->b->result);
		cancel_needless(s);
	}
	cancel_all(s);
	return r;
}

/* --- the whole -------------------------------------------------------------------------- */

static int search(struct bisecting *b, struct err *err)
{
	int r = 0;

	narrow(&b->result);
	while (r >= 0) {
		struct step s = { .b = b };

		choose(&s);
		if (s.n == 0)
			break;
		r = run_step(&s, err);
	}
	b->result.found = b->result.bad == b->result.good + 1;
	return r;
}

int engine_bisect(struct engine *e, const struct engine_bisect_options *options,
		  struct engine_bisect *ret, struct err *err)
{
	CLEANUP(bisecting_done)
	struct bisecting b = { .engine = e, .options = options, .log_fd = -1 };
	const uint64_t begun = engine_clock_ms();
	int r;

	if (options->jobs < 1 || options->jobs > ENGINE_BISECT_JOBS_MAX)
		return err_set(err, -EINVAL, "1 to %d runs can be made at once",
			       ENGINE_BISECT_JOBS_MAX);
	r = bisect_find_line(&b, err);
	if (r < 0)
		return r;
	r = bisect_open_log(&b, err);
	if (r < 0)
		return r;
	if (options->begins)
		options->begins(b.result.n, b.result.git, options->ctx);
	r = search(&b, err);
	if (r < 0)
		return r;
	b.result.elapsed_ms = engine_clock_ms() - begun;
	*ret = TAKE_STRUCT(b.result);
	return 0;
}
