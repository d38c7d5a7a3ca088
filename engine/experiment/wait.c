/*
 * An experiment that another process works on: looking at it, waiting for it, and ending it.
 */
#include <errno.h>
#include <signal.h>

#include "base/await.h"
#include "engine/experiment/experiment-i.h"

#define LOOK_MS   1000  /* a lock that a dying process lets go of is no name that comes */
#define ASKED_MS  20000 /* arms have two seconds of grace each, and clones are to be removed */
#define KILLED_MS 10000

/* --- waiting ------------------------------------------------------------------------------- */

/* Print a table as a whole, lines arm by arm. */
static void tell(const struct engine_experiment_options *o, const struct engine_experiment *x)
{
	struct engine_arms_walk walk = engine_arms_walk(x);
	const struct engine_arm *arm;

	if (!o || !o->tell)
		return;
	while (o->tick_ms == 0 && (arm = engine_arms_next(&walk)))
		o->tell(x, arm, o->ctx);
	o->tell(x, NULL, o->ctx);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int wait_at(struct engine *e, int at, const char *name, uint64_t until,
		   const struct engine_experiment_options *options, struct engine_experiment *ret,
		   struct err *err)
{
	const uint64_t tick = options && options->tick_ms > 0 ? options->tick_ms : LOOK_MS;

	for (;;) {
		const uint64_t now = engine_clock_ms();
		int r = engine_experiment_load(e, name, ret, err);

		if (r < 0)
			return r;
		tell(options, ret);
		if (!ret->alive || now >= until)
			return ret->alive;
		engine_experiment_done(ret);
		r = await_next(at, -1, (int)least(tick, until - now), NULL, NULL);
		if (r < 0)
			return err_set(err, r, "waiting for experiment '%s'", name);
	}
}

int engine_experiment_wait(struct engine *e, const char *name, uint64_t timeout_ms,
			   const struct engine_experiment_options *options,
			   struct engine_experiment *ret, struct err *err)
{
	const uint64_t now = engine_clock_ms();
	const uint64_t until = timeout_ms < ENGINE_UNSAID - now ? now + timeout_ms : ENGINE_UNSAID;
	AUTO_FREE char *path = experiment_path(e, name);
	AUTO_CLOSE int at = await_open();
	int r;

	if (!path)
		return err_nomem(err);
	/* A name that is none, or not there, is said so. */
	r = engine_experiment_load(e, name, ret, err);
	if (r < 0)
		return r;
	engine_experiment_done(ret);
	r = at < 0 ? at : await_names(at, path);
	if (r < 0)
		return err_set(err, r, "waiting for experiment '%s'", name);
	return wait_at(e, at, name, until, options, ret, err);
}

/* --- ending -------------------------------------------------------------------------------- */

/* Ask the process that works on it, then force it; 0 when none does any more. */
static int end_worker(struct engine *e, const char *name, struct engine_experiment *x,
		      struct err *err)
{
	static const struct {
		int sig;
		uint64_t ms;
	} ways[] = { { SIGTERM, ASKED_MS }, { SIGKILL, KILLED_MS } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(ways) && x->alive; i++) {
		r = experiment_signal(e, x, ways[i].sig, err);
		/* -ESRCH: it may be just about to go, or one that only looked had the lock. */
		if (r < 0 && r != -ESRCH)
			return r;
		engine_experiment_done(x);
		r = engine_experiment_wait(e, name, ways[i].ms, NULL, x, err);
		if (r < 0)
			return r;
	}
	return x->alive ? err_set(err, -EBUSY, "the process that works on '%s' does not end", name)
			: 0;
}

int engine_experiment_cancel(struct engine *e, const char *name, struct engine_experiment *ret,
			     struct err *err)
{
	CLEANUP(engine_experiment_done) struct engine_experiment x = { 0 };
	int r = engine_experiment_load(e, name, &x, err);

	if (r < 0)
		return r;
	if (!x.alive && x.state == ENGINE_EXPERIMENT_ENDED) {
		*ret = TAKE_STRUCT(x);
		return 1;
	}
	r = end_worker(e, name, &x, err);
	if (r >= 0)
		r = work_interrupt(e, name, err);
	if (r >= 0)
		r = engine_experiment_load(e, name, ret, err);
	/* It may have come to its end meanwhile. */
	return r < 0 ? r : ret->state == ENGINE_EXPERIMENT_ENDED;
}
