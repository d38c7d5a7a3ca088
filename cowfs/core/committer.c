/*
 * committer.c - the thread that persists layers, when their time has come or a resource is short.
 */

#include "base/log.h"
#include "base/size.h"
#include "base/sys.h"
#include "cowfs/core/file-i.h"
#include "cowfs/core/layers-i.h"
#include "cowfs/core/persist-i.h"
#include "cowfs/store/upkeep/gc.h"

/*
 * Many names changed, and then nothing for a sixteenth of the time that changes may stay in memory: the
 * program has probably finished and will look at the result next.  So many names are worth a commit of
 * their own.  A large file that is being written, or a few that change again and again, are stored no
 * sooner than otherwise.
 */
#define MANY        1000
#define QUIET_SHARE 16

/* A program that renames file after file causes a persist, then none for three times as long. */
#define HURRY_MS    5
#define HURRY_SHARE 3

/* How long until it is due for that, or may be: they may become so many any moment. */
static int64_t quiet_left(const struct layers *ls, const struct layer *l, int64_t now)
{
	const int64_t quiet = ls->options.persist_ms / QUIET_SHARE + 1;
	const int64_t left = l->changed_at + quiet - now;

	return left > 0 || l->marks >= MANY ? left : quiet;
}

/* One that has left so much garbage waits for the next gc, unless its memory is needed. */
static int64_t garbage_left(const struct layers *ls, const struct layer *l, int64_t now)
{
	return sweep_is_much(l) ? ls->no_sweep_until - now : 0;
}

static bool is_due(struct layers *ls, struct layer *l, int64_t now, int64_t *ret_wait)
{
	const int64_t garbage = garbage_left(ls, l, now);
	const int64_t since = atomic_load(&l->dirty_since);
	int64_t left, quiet, hurry = l->hurry_at;

	if (since == 0 || l->apart)
		return false;
	left = since + ls->options.persist_ms - now;
	quiet = quiet_left(ls, l, now);
	if (quiet < left)
		left = quiet;
	if (hurry > 0) {
		if (hurry < l->calm_until)
			hurry = l->calm_until;
		if (hurry - now < left)
			left = hurry - now;
	}
	if (left < garbage)
		left = garbage;
	if (left <= 0 || ls->wanted > 0 || layers_pressed(ls))
		return true;
	if (*ret_wait < 0 || left < *ret_wait)
		*ret_wait = left;
	return false;
}

/* One that is due and that this round has not had, or NULL and how long nothing is.  lock held. */
static struct layer *next_due(struct layers *ls, uint64_t round, int64_t *ret_wait)
{
	const int64_t now = layers_clock();

	*ret_wait = -1;
	for (struct layer *l = ls->list; l; l = l->next)
		if (l->round != round && is_due(ls, l, now, ret_wait))
			return l;
	return NULL;
}

/* Once, until there is room again. */
static void warn_of_limit(struct layers *ls)
{
	char limit[SIZE_TEXT_MAX];

	if (ls->tight && !ls->tightness_told && ls->over_limit)
		log_warn("the store has reached its limit of %s ('store.limit' in config.yaml): "
			 "writes in clones fail until something is removed",
			 size_format(store_limit(ls->store), limit));
	else if (ls->tight && !ls->tightness_told)
		log_warn("the disk of the store is nearly full: writes in clones fail until "
			 "something is removed");
	else if (!ls->tight && ls->tightness_told)
		log_info("there is room for writes again");
	ls->tightness_told = ls->tight;
}

/* Deleting makes room only once what was deleted is swept and the logs are moved. */
static void find_room(struct layers *ls)
{
	struct gc_progress progress;
	struct err err = { 0 };

	layers_look_at_disk(ls);
	if (!ls->tight)
		return;
	if (store_checkpoint(ls->store, &err) < 0)
		log_debug("%s, continuing", err.msg);
	layers_look_at_disk(ls);
	if (!ls->tight || ls->persists + ls->removals == ls->swept_at)
		return;
	ls->swept_at = ls->persists + ls->removals;
	if (gc_run(ls->store, &progress, &err) < 0)
		log_warn("the disk is nearly full and gc failed: %s, continuing", err.msg);
	else if (store_checkpoint(ls->store, &err) < 0)
		log_debug("%s, continuing", err.msg);
	layers_look_at_disk(ls);
}

static void make_room(struct layers *ls)
{
	find_room(ls);
	warn_of_limit(ls);
}

static void commit_layer(struct layer *l)
{
	const uint64_t begun = traffic_work_now();
	struct err err = { 0 };

	if (persist_aside(l, &err) < 0)
		log_warn("clone '%s' cannot be persisted: %s, trying again", layer_name(l),
			 err.msg);
	traffic_worked(l, begun);
}

/* lock held, but while it works */
static void commit_held(struct layers *ls, struct layer *l)
{
	const int64_t begun = layers_clock();

	l->committers++;
	pthread_mutex_unlock(&ls->lock);
	commit_layer(l);
	pthread_mutex_lock(&ls->lock);
	l->committers--;
	ls->worked_at = layers_clock();
	l->calm_until = ls->worked_at + HURRY_MS + HURRY_SHARE * (ls->worked_at - begun);
	pthread_cond_broadcast(&ls->changed);
}

static void *run_apart(void *arg)
{
	struct layer *l = arg;
	struct layers *ls = l->all;

	sys_lower_priority();
	LOCKED(&ls->lock);
	commit_held(ls, l);
	l->apart = false;
	l->committers--;
	ls->apart--;
	pthread_cond_broadcast(&ls->changed);
	return NULL;
}

/* lock held; false: there is no thread for it */
static bool commit_apart(struct layers *ls, struct layer *l)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_apart, l) != 0)
		return false;
	pthread_detach(thread);
	l->apart = true;
	l->committers++;
	ls->apart++;
	return true;
}

/* lock held, but while it works.  One that waits for promised bytes does not keep the others from their turn. */
static void commit(struct layers *ls, struct layer *l)
{
	l->round = ls->rounds + 1;
	if (!l->has_partly || !commit_apart(ls, l))
		commit_held(ls, l);
}

void layer_hurry(struct layer *l)
{
	if (l->hurry_at != 0 || l->passing)
		return;
	l->hurry_at = layers_clock();
	layers_wake(l->all);
}

/* One layer, if one is due that does not owe a gc.  lock held, but while it works. */
static void commit_due(struct layers *ls)
{
	const int64_t now = layers_clock();
	struct layer *next = NULL;
	int64_t wait = -1;

	/* One that is always due must not keep the others from their turn. */
	for (struct layer *l = ls->list; l; l = l->next)
		if ((!next || l->round < next->round) && !sweep_is_owed(l) && !sweep_is_much(l) &&
		    is_due(ls, l, now, &wait))
			next = l;
	if (!next)
		return;
	commit(ls, next);
	ls->rounds++;
}

/* lock held, but for what takes long */
static void end_round(struct layers *ls)
{
	if (ls->wanted > 0 || ls->tight) {
		pthread_mutex_unlock(&ls->lock);
		make_room(ls);
		pthread_mutex_lock(&ls->lock);
	}
	ls->rounds++;
}

/*
 * Most of what was in memory is gone, or was found to be garbage: so may its memory be.  But what was
 * just persisted is likely to be looked at next: then it is to be done later.  How long until then,
 * or -1.  lock held, but for that
 */
static int64_t give_memory_back(struct layers *ls)
{
	const int64_t left = ls->worked_at + ls->options.persist_ms - layers_clock();
	const bool few = ls->nodes <= ls->nodes_high / 2 && ls->nodes_high >= MEMORY_NODES;
	const bool clean = ls->dirty <= ls->dirty_high / 2 && ls->dirty_high >= MEMORY_DIRTY;
	const bool swept = ls->unreturned;

	if (!few && !clean && !swept)
		return -1;
	if (left > 0)
		return left;
	ls->nodes_high = ls->nodes;
	ls->dirty_high = ls->dirty;
	ls->unreturned = false;
	pthread_mutex_unlock(&ls->lock);
	/* The cache may hold what a removed clone had, up to its limits, and nobody will ask for it. */
	if (few || swept)
		cache_drop(ls->cache);
	store_trim(ls->store);
	pool_trim();
	sys_return_memory();
	pthread_mutex_lock(&ls->lock);
	return -1;
}

/* lock held, but while it works */
static void free_closed(struct layers *ls)
{
	struct layer *l = ls->closed;

	pthread_mutex_unlock(&ls->lock);
	layer_destroy(l);
	pthread_mutex_lock(&ls->lock);
	ls->closed = NULL;
}

/* Of two times to wait, of which -1 is never. */
static int64_t sooner(int64_t a, int64_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* How long until what is committed must be on the disk, or -1; if it must be now, it is then. */
static int64_t harden_in_time(struct layers *ls)
{
	const int64_t at = ls->harden_at, left = at - layers_clock();
	struct err err = { 0 };

	if (at == 0 || left > 0)
		return at == 0 ? -1 : left;
	ls->harden_at = 0; /* first: what is committed from here on asks anew */
	pthread_mutex_unlock(&ls->lock);
	if (store_harden(ls->store, &err) < 0)
		log_warn("%s, continuing", err.msg);
	pthread_mutex_lock(&ls->lock);
	return 0;
}

void *committer_run(void *arg)
{
	struct layers *ls = arg;
	struct layer *l;
	int64_t wait, later;

	sys_lower_priority();
	LOCKED(&ls->lock);
	while (!ls->stop) {
		if (ls->closed)
			free_closed(ls);
		l = next_due(ls, ls->rounds + 1, &wait);
		if (!l) {
			end_round(ls);
			if (!ls->stop && harden_in_time(ls) == 0)
				continue;
			if (!ls->stop && sweep_left(ls) == 0) {
				sweep_run(ls, !ls->sweep_wanted, commit_due);
				continue;
			}
			later = sooner(give_memory_back(ls), sweep_left(ls));
			later = sooner(later, harden_in_time(ls));
			pthread_cond_broadcast(&ls->changed);
			/* What failed, or grew meanwhile, has another try a little later. */
			if (next_due(ls, ls->rounds + 1, &wait) || ls->wanted > 0)
				wait = 20;
			else
				wait = sooner(wait, later);
			/* The lock was let go of meanwhile, so a call to stop may have come. */
			if (!ls->stop && !ls->closed)
				layers_wait(ls, &ls->work, wait);
			continue;
		}
		if (sweep_is_owed(l))
			sweep_run(ls, false, commit_due);
		else
			commit(ls, l);
	}
	return NULL;
}
