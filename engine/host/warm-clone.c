/*
 * One thread makes warm clones, has them walked and drops them. For a client that announced to need
 * several, two are walked at once: one walk keeps about one processor busy.
 */
#include "engine/host/warm-spares-i.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "cowfs/fuse/meter.h"
#include "engine/host/host-i.h"

#define KEEP_MS     600000 /* a warm clone that nobody takes */
#define EXTRA_MS    120000 /* those beyond the first, which somebody announced to need */
#define QUIET_MS    200    /* cowfsd must have been quiet for so long: */
#define QUIET_SHARE 10     /* busy for less than this fraction of it, */
#define PATIENCE_MS 10000  /* unless this much time has passed */

/* --- the spares (lock held) --------------------------------------------------------------- */

bool warm_is_stale(const struct warm_clone *s)
{
	return s->n > 0 && !object_id_equal(&s->root, &s->wish.root);
}

/* One whose mount has gone is none. */
static bool is_short(const struct warm_clone *s)
{
	size_t n = 0;

	for (size_t i = 0; !warm_is_stale(s) && i < s->n; i++)
		n += !mount_ended(s->spares[i].mount);
	return s->wish.count > n;
}

static bool is_walked(const struct warm_clone *s, const struct spare *one)
{
	return walkers_in(&s->walkers, one->layer);
}

/* The first of which so many walks are done and the next is due. */
static struct spare *find_due(struct warm_clone *s, unsigned walks)
{
	for (size_t i = 0; !warm_is_stale(s) && i < s->n; i++) {
		struct spare *one = &s->spares[i];

		if (one->due && one->walks == walks && !is_walked(s, one))
			return one;
	}
	return NULL;
}

static uint64_t requests_of(const struct spare *one)
{
	struct mount_stats stats;

	mount_stats(one->mount, &stats);
	return stats.requests + stats.deferred;
}

static struct spare pull(struct warm_clone *s, const struct spare *one)
{
	const struct spare gone = *one;
	const size_t at = (size_t)(one - s->spares);

	others_left(&s->others, requests_of(one));
	memmove(&s->spares[at], &s->spares[at + 1], (s->n - at - 1) * sizeof(*one));
	s->n--;
	return gone;
}

/* --- walks ------------------------------------------------------------------------------ */

/* lock held; `again`: it is to walk there once more, later */
static void end_walk(struct warm_clone *s, struct spare *one, bool again)
{
	if (!is_walked(s, one))
		return;
	one->cut |= again;
	walkers_kill(&s->walkers, one->layer);
}

/* lock held */
static void end_walks(struct warm_clone *s, bool again)
{
	for (size_t i = 0; i < s->n; i++)
		end_walk(s, &s->spares[i], again);
}

/* lock held */
static void walk_ended(void *ctx, const void *layer, bool whole)
{
	struct warm_clone *s = ctx;
	struct spare *one = VEC_FIND(it, s->spares, s->n, it->layer == layer);

	if (one && whole) {
		log_debug("a warm clone is %s after %llu ms", one->walks == 0 ? "ready" : "warm",
			  (unsigned long long)(engine_clock_ms() - one->made));
		one->due = ++one->walks < 2;
		one->cut = false;
	} else if (one) {
		one->due = one->cut;
	}
}

/* lock held */
static void begin_walk(struct warm_clone *s, struct spare *one)
{
	AUTO_CLOSE int top = mount_top(one->mount);

	one->cut = false;
	one->begun = true;
	if (top < 0 ||
	    walkers_begin(&s->walkers, one->layer, s->host->dir, top, one->walks > 0) < 0)
		one->due = false; /* then it is as warm as it was */
}

static uint64_t requests_of_all(const struct warm_clone *s)
{
	uint64_t ours = 0;

	for (size_t i = 0; i < s->n; i++)
		ours += requests_of(&s->spares[i]);
	return ours;
}

static bool is_others_turn(struct warm_clone *s)
{
	return others_at_work(&s->others, meter_total(), requests_of_all(s), engine_clock_ms());
}

/* How much programs in clones have asked so far. */
static uint64_t requests_of_others(const struct warm_clone *s)
{
	return others_count(&s->others, meter_total(), requests_of_all(s));
}

/* A task that announced a need waits for it; else one at a time disturbs least.  lock held */
static bool may_walk(const struct warm_clone *s)
{
	const size_t most = s->announced > 0 && sys_processors() > 1 ? WALKERS_MAX : 1;

	return walkers_count(&s->walkers) < most;
}

/* --- making and dropping ---------------------------------------------------------------- */

/* lock held, but while it closes it */
static void drop(struct warm_clone *s, struct spare *which)
{
	const struct spare one = pull(s, which);

	pthread_mutex_unlock(&s->lock);
	warm_clone_drop(s->host, one.layer, one.mount);
	pthread_mutex_lock(&s->lock);
}

/* One of another root, or whose mount has gone.  lock held */
static struct spare *find_useless(struct warm_clone *s)
{
	for (size_t i = s->n; i-- > 0;)
		if (warm_is_stale(s) || mount_ended(s->spares[i].mount))
			return &s->spares[i];
	return NULL;
}

/* lock held, but while it works or waits */
static void drop_useless(struct warm_clone *s)
{
	struct spare *useless;

	while ((useless = find_useless(s))) {
		if (!is_walked(s, useless)) {
			drop(s, useless);
			continue;
		}
		end_walk(s, useless, false);
		pthread_cond_wait(&s->changed, &s->lock);
	}
}

/* One more.  lock held, but while it works */
static void fulfil(struct warm_clone *s)
{
	struct warm_clone_wish w = s->wish;
	struct spare one = { .due = true };
	struct err err = { 0 };
	int r;

	drop_useless(s);
	if (!is_short(s) || !object_id_equal(&w.root, &s->wish.root) || s->n == SPARES_MAX)
		return;
	w.growing = walkers_count(&s->walkers);
	pthread_mutex_unlock(&s->lock);
	r = warm_clone_make(s->host, &w, &one.layer, &one.mount, &err);
	one.made = engine_clock_ms();
	pthread_mutex_lock(&s->lock);
	if (r < 0) {
		s->hopeless |= r == -ENOTSUP;
		/* As many as there are must do. */
		if (object_id_equal(&w.root, &s->wish.root))
			s->wish.count = s->n;
		log_debug("no warm clone: %s", err.code == r ? err.msg : strerror(-r));
		return;
	}
	if (s->n == 0) {
		s->root = w.root;
		s->snapshot = w.snapshot;
	}
	s->spares[s->n++] = one;
}

/* --- the thread ------------------------------------------------------------------------- */

/* lock held.  False if the time is over. */
static bool wait_until(struct warm_clone *s, uint64_t ms)
{
	const struct timespec until = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	return sys_cond_wait_until(&s->changed, &s->lock, &until) != -ETIMEDOUT;
}

static uint64_t cpu_ms(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000;
}

/*
 * A clone that was just made is about to be used, and a walk at the same time would slow down both.
 * lock held; returns when the daemon is quiet or the state has changed.
 */
static void wait_for_quiet(struct warm_clone *s)
{
	const uint64_t patience = engine_clock_ms() + PATIENCE_MS;
	uint64_t used, until;

	do {
		used = cpu_ms();
		until = engine_clock_ms() + QUIET_MS;
		while (!s->ending && s->takers.waiting == 0 && wait_until(s, until))
			continue;
		used = cpu_ms() - used;
	} while (!s->ending && s->takers.waiting == 0 &&
		 (s->rests > 0 || (used * QUIET_SHARE >= QUIET_MS && until < patience)));
}

/* lock held, but while it waits */
static void walk(struct warm_clone *s, unsigned walks)
{
	struct spare *one = find_due(s, walks);

	if (one && one->cut) {
		wait_for_quiet(s);
		one = find_due(s, walks);
	}
	if (one && !s->ending && (walks == 0 || !is_short(s)))
		begin_walk(s, one);
}

/* Clones that were announced are needed now; those that may be needed can wait.  Likewise. */
static void make_another(struct warm_clone *s)
{
	if (s->n >= s->announced || s->rests > 0)
		wait_for_quiet(s);
	if (!s->ending)
		fulfil(s);
}

/* Wait until something happens or one has been there for too long.  Likewise. */
static void wait_or_give_up(struct warm_clone *s)
{
	const uint64_t until = s->n > 1 ? s->asked + EXTRA_MS : s->spares[0].made + KEEP_MS;

	if (engine_clock_ms() < until) {
		wait_until(s, until);
		return;
	}
	log_debug("nobody wanted a warm clone");
	s->wish.count = s->n - 1;
	s->announced = 0;
	drop(s, &s->spares[s->n - 1]);
}

static void *warm_clone_run(void *arg)
{
	struct warm_clone *s = arg;

	LOCKED(&s->lock);
	while (!s->ending) {
		const bool second = walkers_count(&s->walkers) > 0;
		const bool idle = !find_due(s, 0) && !is_short(s);
		const bool held = takers_hold(&s->takers, engine_clock_ms());

		if (!may_walk(s) || (idle && (second || s->n == 0)))
			pthread_cond_wait(&s->changed, &s->lock);
		/* To one at work in a cold clone, two walkers would be too much. */
		else if (second && is_others_turn(s))
			wait_until(s, engine_clock_ms() + OTHERS_LOOK_MS);
		else if (!held && find_due(s, 0))
			walk(s, 0);
		else if (is_short(s) && (!held || s->n < s->announced))
			make_another(s);
		else if (held)
			wait_until(s, s->takers.at + TAKERS_MS);
		else if (find_due(s, 1))
			walk(s, 1);
		else
			wait_or_give_up(s);
	}
	while (walkers_count(&s->walkers) > 0)
		pthread_cond_wait(&s->changed, &s->lock);
	while (s->n > 0)
		drop(s, &s->spares[s->n - 1]);
	return NULL;
}

/* --- what others want of it ------------------------------------------------------------- */

int warm_clone_new(struct host *h, struct warm_clone **ret, struct err *err)
{
	struct warm_clone *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err);
	s->host = h;
	pthread_mutex_init(&s->lock, NULL);
	sys_cond_init(&s->changed);
	walkers_init(&s->walkers, &s->lock, &s->changed, walk_ended, s);
	*ret = s;
	return 0;
}

void warm_clone_end(struct warm_clone *s)
{
	bool started;

	pthread_mutex_lock(&s->lock);
	s->ending = true;
	started = s->started;
	s->started = false;
	end_walks(s, false);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (started)
		pthread_join(s->thread, NULL);
	warm_clone_close_again(s->host);
}

void warm_clone_free(struct warm_clone *s)
{
	if (!s)
		return;
	warm_clone_end(s);
	assert(s->n == 0);
	walkers_done(&s->walkers);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* lock held */
static void start_thread(struct warm_clone *s)
{
	if (!s->started && pthread_create(&s->thread, NULL, warm_clone_run, s) == 0)
		s->started = true;
}

/* Others that were announced follow: none is walked through beside them.  lock held */
static void note_taken(struct warm_clone *s)
{
	takers_took(&s->takers, requests_of_others(s), engine_clock_ms());
	end_walks(s, true);
}

/* The names of another are wanted sooner than what is in the files of one.  lock held */
static void end_vain_walks(struct warm_clone *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct spare *one = &s->spares[i];

		if (warm_is_stale(s) || mount_ended(one->mount) || (is_short(s) && one->walks > 0))
			end_walk(s, one, !warm_is_stale(s));
	}
}

/* lock held */
static void want(struct warm_clone *s, const struct snapshot *base, size_t count)
{
	const bool same = object_id_equal(&s->wish.root, &base->root);
	const size_t likely = habit_expects(&s->habit, &base->project, engine_clock_ms(),
					    warm_clone_cost(base->files), sys_available_memory());

	count = count > SPARES_MAX ? SPARES_MAX : count;
	if (!same) {
		s->announced = 0;
		s->takers.asked = false;
	}
	if (count > 1 && count > s->announced)
		s->announced = count;
	count = count > likely ? count : likely;
	s->wish = (struct warm_clone_wish){
		/* A smaller number does not take back a larger one that was announced. */
		.count = same && s->wish.count > count ? s->wish.count : count,
		.snapshot = base->id,
		.project = base->project,
		.root = base->root,
		.files = base->files,
	};
	s->asked = engine_clock_ms();
	end_vain_walks(s);
	start_thread(s);
	pthread_cond_broadcast(&s->changed);
}

void warm_clone_follow(struct warm_clone *s, const struct snapshot *base, size_t made, size_t count)
{
	LOCKED(&s->lock);
	habit_note(&s->habit, &base->project, made, engine_clock_ms());
	if (!s->ending && !s->hopeless)
		want(s, base, count);
	if (count > 1 && made == 0)
		s->takers.asked = true;
	else if (count > 1)
		note_taken(s);
}

void warm_clone_renew(struct warm_clone *s, const struct snapshot *newest)
{
	LOCKED(&s->lock);
	if (!s->ending && !s->hopeless && catalog_id_same(&s->wish.project, &newest->project))
		want(s, newest, 1);
}

void warm_clone_rest(struct warm_clone *s)
{
	LOCKED(&s->lock);
	s->rests++;
	end_walks(s, true);
}

void warm_clone_rested(struct warm_clone *s)
{
	LOCKED(&s->lock);
	s->rests--;
}

/* How warm it is; of two that are as warm, the one in which nobody walks can be had at once. */
static unsigned rank(const struct warm_clone *s, const struct spare *one)
{
	const unsigned warmth = one->walks > 0 ? 1 + one->walks : one->begun;

	return 2 * warmth + !is_walked(s, one);
}

/* lock held */
static struct spare *find_best(struct warm_clone *s, const struct object_id *root)
{
	struct spare *best = NULL;

	for (size_t i = 0; !s->ending && object_id_equal(&s->root, root) && i < s->n; i++) {
		struct spare *one = &s->spares[i];

		if (mount_ended(one->mount))
			continue;
		if (!best || rank(s, one) > rank(s, best))
			best = one;
	}
	return best;
}

/* A look at a cold one would take longer than a walk and a look.  lock held, but while it waits */
static void await_walk(struct warm_clone *s, const struct object_id *root)
{
	const uint64_t now = engine_clock_ms(), until = now + TAKERS_WAIT_MS;
	const struct spare *best;

	takers_learn(&s->takers, requests_of_others(s), s->wish.files, now);
	if (!takers_are_patient(&s->takers, now))
		return;
	s->takers.waiting++;
	pthread_cond_broadcast(&s->changed);
	while ((best = find_best(s, root)) && best->walks == 0 && best->due && s->rests == 0 &&
	       wait_until(s, until))
		continue;
	s->takers.waiting--;
}

/* lock held, but while it waits for a walker */
static bool take_layer(struct warm_clone *s, const struct object_id *root, struct layer **ret_layer,
		       struct mount **ret_mount)
{
	struct spare *best, one;

	while ((best = find_best(s, root)) && is_walked(s, best)) {
		end_walk(s, best, false);
		pthread_cond_wait(&s->changed, &s->lock);
	}
	if (!best)
		return false;
	one = pull(s, best);
	*ret_layer = one.layer;
	*ret_mount = one.mount;
	if (s->wish.count > 0 && object_id_equal(&s->root, &s->wish.root))
		s->wish.count--;
	s->asked = engine_clock_ms();
	if (s->announced > 0) {
		s->takers.asked &= --s->announced > 0;
		note_taken(s);
	}
	return true;
}

bool warm_clone_take(struct warm_clone *s, const struct object_id *root, struct layer **ret_layer,
		     struct mount **ret_mount)
{
	bool found;

	LOCKED(&s->lock);
	if (s->announced > 0 && object_id_equal(&s->root, root))
		await_walk(s, root);
	found = take_layer(s, root, ret_layer, ret_mount);
	if (found)
		s->taken++;
	return found;
}

void warm_clone_let_go(struct warm_clone *s)
{
	CLEANUP(snapshot_done) struct snapshot named = { 0 };
	struct catalog_id snapshot;
	struct object_id root;
	struct layer *layer;
	struct mount *mount;
	bool found;

	pthread_mutex_lock(&s->lock);
	snapshot = s->snapshot;
	root = s->root;
	found = s->n > 0;
	pthread_mutex_unlock(&s->lock);
	if (!found || snapshot_get(s->host->store, &snapshot, &named, NULL) != -ENOENT)
		return;
	do {
		pthread_mutex_lock(&s->lock);
		if (object_id_equal(&root, &s->wish.root))
			s->wish.count = 0;
		found = take_layer(s, &root, &layer, &mount);
		pthread_mutex_unlock(&s->lock);
		if (found)
			warm_clone_drop(s->host, layer, mount);
	} while (found);
}
