/*
 * All captures: how they begin and end, and which acts wait for them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define TELL_MS 100
#define OPEN_MAX \
	4 /* captures under way before another one waits: each has its list of files in memory */

/* --- beginning and end -------------------------------------------------------------------- */

int promises_new(struct host *h, struct promises **ret, struct err *err)
{
	struct promises *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(err);
	p->host = h;
	p->early = true; /* an earlier cowfsd may have left some */
	pthread_mutex_init(&p->lock, NULL);
	sys_cond_init(&p->changed);
	*ret = p;
	return 0;
}

void promises_end(struct promises *p)
{
	promises_hold_no_more(p,
			      true); /* while the threads are there, which writers may wait for */
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	for (struct promising *c = p->first; c; c = c->after)
		if (c->supply)
			supply_end(c->supply);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	promises_end_sifting(p);
	/* Whoever begins one now finds that all is ending; promises_free() waits for that. */
	for (struct promising *c = p->first; c; c = c->after) {
		if (c->started)
			pthread_join(c->thread, NULL);
		c->started = false;
	}
}

void promises_free(struct promises *p)
{
	struct promising *c;

	if (!p)
		return;
	promises_end(p);
	while ((c = p->first)) {
		pthread_mutex_lock(&p->lock);
		while (c->in_use > 0)
			pthread_cond_wait(&p->changed, &p->lock);
		pthread_mutex_unlock(&p->lock);
		p->first = c->after;
		promising_free(c);
	}
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Free captures that have ended and lost nothing: there is nothing left to tell of them. */
static void reap(struct promises *p)
{
	struct promising **at = &p->first, *gone = NULL, *c;

	pthread_mutex_lock(&p->lock);
	while (!p->ending && (c = *at)) {
		if (!c->ended || c->lost > 0 || c->in_use > 0) {
			at = &c->after;
			continue;
		}
		*at = c->after;
		c->after = gone;
		gone = c;
	}
	pthread_mutex_unlock(&p->lock);
	while ((c = gone)) {
		gone = c->after;
		if (c->started)
			pthread_join(c->thread, NULL);
		promising_free(c);
	}
}

/* Without it, what is lost is unreadable all the same, and only has no name. */
static void index_lost(struct promising *c)
{
	struct err err = { 0 };

	if (promising_index(c, &err) < 0)
		log_warn("cannot list the files that a lazy capture of '%s' lost: %s, continuing",
			 c->dir ? c->dir : "?", err.msg);
	c->indexed = true;
}

/* For tests: no thread can be had while the file that SNAPCOW_LAZY_THREAD names is there. */
static int make_thread(struct promising *c)
{
	const char *none = getenv("SNAPCOW_LAZY_THREAD");

	if (none && access(none, F_OK) == 0)
		return -EAGAIN;
	return -pthread_create(&c->thread, NULL, promising_run, c);
}

/* lock held.  Without a thread its files are read when they are needed, and whoever waits tries again. */
static void start_thread(struct promising *c)
{
	int r = c->ended || c->started ? 0 : make_thread(c);

	c->started |= r == 0;
	if (r < 0)
		err_set(&c->stuck, r, "there is no thread for it: %s", strerror(-r));
}

/* lock held, but while it works */
static void start_without(struct promising *c)
{
	const struct err why = c->stuck;
	struct err err = { 0 };
	int r;

	log_warn("a lazy capture: %s, continuing", why.msg);
	c->stuck = (struct err){ 0 };
	pthread_mutex_unlock(&c->all->lock);
	r = promising_index(c, &err); /* if it fails, a thread tries again */
	pthread_mutex_lock(&c->all->lock);
	if (r >= 0)
		r = promising_take_over(c, &err);
	c->indexed = r >= 0;
	c->stuck = why;
	pthread_cond_broadcast(&c->all->changed);
}

static int start(struct promises *p, const struct lazy *record, struct signatures *signatures,
		 bool recovered, bool held, struct err *err)
{
	struct promising *c = calloc(1, sizeof(*c));

	if (!c) {
		signatures_free(signatures);
		return err_nomem(err);
	}
	c->all = p;
	c->record = *record;
	c->signatures = signatures;
	c->recovered = recovered;
	c->sifted = !recovered;
	c->held = held;
	c->top = -1;
	pthread_mutex_init(&c->saving, NULL);
	c->by_id = MAP_INIT(object_ref_hash, object_ref_equal);
	c->ended = record->ended != 0;
	if (c->ended)
		index_lost(c);
	if (recovered)
		promising_find_heirs(c);
	pthread_mutex_lock(&p->lock);
	c->after = p->first;
	p->first = c;
	start_thread(c);
	if (!c->started && !c->ended)
		start_without(c);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Those that ended, and of whose lost files nobody can ask any more. */
struct unneeded {
	struct promises *p;
	const struct lazy *one;
	struct catalog_id *list; /* owned */
	size_t n, cap;
};

static void unneeded_done(struct unneeded *u)
{
	free(u->list);
}

static int needs(const struct clone *c, void *ctx, struct err *err)
{
	const struct unneeded *u = ctx;

	return catalog_id_same(&c->base, &u->one->snapshot) ||
	       catalog_id_same(&c->start, &u->one->snapshot);
}

static int inherits(const struct snapshot *s, void *ctx, struct err *err)
{
	const struct unneeded *u = ctx;

	return promising_may_inherit(u->one, s);
}

static int recover_one(const struct lazy *l, void *ctx, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	struct unneeded *u = ctx;
	int r;

	if (!l->ended)
		return start(u->p, l, NULL, true, false, err);
	u->one = l;
	r = snapshot_get(u->p->host->store, &l->snapshot, &s, err);
	if (r == -ENOENT)
		r = clone_each(u->p->host->store, needs, u, err) == 0 &&
			    snapshot_each(u->p->host->store, inherits, u, err) == 0
			? -ENOENT
			: 0;
	if (r != -ENOENT)
		return r < 0 ? r : start(u->p, l, NULL, true, false, err);
	if (!VEC_ROOM(u->list, u->n, u->cap))
		return err_nomem(err);
	u->list[u->n++] = l->id;
	return 0;
}

int promises_recover(struct promises *p, struct err *err)
{
	CLEANUP(unneeded_done) struct unneeded u = { .p = p };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r = lazy_each(p->host->store, recover_one, &u, err);

	if (r >= 0) {
		promises_sweep_incoming(p);
		promises_sweep_stash(p);
		promises_begin_sifting(p);
	}
	if (r < 0 || u.n == 0)
		return r;
	r = batch_begin(p->host->store, &b, err);
	for (size_t i = 0; i < u.n && r >= 0; i++)
		r = lazy_delete(b, &u.list[i], err);
	return r < 0 ? r : batch_commit(b, BATCH_SAFE, err);
}

bool promises_may_begin(struct promises *p, struct promises_walk *w)
{
	bool may;

	pthread_mutex_lock(&p->lock);
	may = p->inside == 0 && !p->ending;
	if (may) {
		w->next = p->walks;
		p->walks = w;
	}
	pthread_mutex_unlock(&p->lock);
	return may;
}

void promises_give_up(struct promises *p, struct promises_walk *w)
{
	struct promises_walk **at = &p->walks;

	pthread_mutex_lock(&p->lock);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	promises_hold_no_more(p, false);
	promises_drop_unpromised(p);
}

void promises_begin(struct promises *p, struct promises_walk *w, const struct lazy *record,
		    struct signatures *signatures, bool held)
{
	struct err err = { 0 };

	reap(p);
	/* The record stays, so the next cowfsd goes on. */
	if (start(p, record, signatures, false, held, &err) < 0)
		log_error("%s; 'snap stop' and the next command capture the rest", err.msg);
	promises_give_up(p, w);
}

/* lock held; the one under way that a snapshot comes from, or NULL */
static struct promising *find_of(const struct promises *p, const struct catalog_id *snapshot)
{
	for (struct promising *c = p->first; c; c = c->after)
		if (promising_is_open(c) && catalog_id_same(&c->record.snapshot, snapshot))
			return c;
	return NULL;
}

void promises_halt(struct promises *p, const struct catalog_id *snapshot)
{
	struct promising *c;
	LOCKED(&p->lock);

	while ((c = find_of(p, snapshot))) {
		c->halted = true;
		if (c->saving_now == 0)
			return;
		pthread_cond_wait(&p->changed, &p->lock);
	}
}

void promises_resume(struct promises *p, const struct catalog_id *snapshot, bool gone)
{
	struct promising *c;

	pthread_mutex_lock(&p->lock);
	c = find_of(p, snapshot);
	if (c) {
		c->halted = false;
		c->unneeded = gone;
	}
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (!gone)
		return;
	promises_hold_no_more(p, false);
	promises_drop_unpromised(p);
}

/* --- whom promises concern ---------------------------------------------------------------- */

static const struct promises_scope everything = { .all = true };

static bool has(const struct promises_scope *s, const struct catalog_id *project)
{
	for (size_t i = 0; i < s->n && !s->all; i++)
		if (catalog_id_same(project, &s->projects[i]))
			return true;
	return s->all;
}

/* Is it under way, and of one of these projects? */
static bool is_in(const struct promising *c, const struct promises_scope *s)
{
	return promising_is_open(c) && has(s, &c->record.project) &&
	       !(s->beside && promising_lends(c));
}

/* May what it walks over be of one of these projects, or become the one that is meant? */
static bool may_be_in(const struct promises_walk *w, const struct promises_scope *s)
{
	if (s->walks || catalog_id_is_zero(&w->project) || has(s, &w->project))
		return true;
	return s->here && w->path && strlen(w->path) >= s->around &&
	       path_is_below(s->here, w->path);
}

/* lock held; the first of them, or NULL */
static struct promising *find_open(const struct promises *p, const struct promises_scope *s)
{
	for (struct promising *c = p->first; c; c = c->after)
		if (is_in(c, s))
			return c;
	return NULL;
}

bool promises_open(struct promises *p, const struct catalog_id *project)
{
	struct promises_scope one = { .n = 1 };
	LOCKED(&p->lock);

	if (!project)
		return find_open(p, &everything) != NULL;
	one.projects[0] = *project;
	return find_open(p, &one) != NULL;
}

/* lock held, but while it tells */
static int tell(struct promises *p, const struct promising *c, const struct task *task,
		const struct engine_watch *watch, struct err *err)
{
	const struct engine_progress now = {
		.doing = c && c->record.remote ? "fetching" : "capturing",
		.done = c ? c->done : 0,
		.total = c ? c->n : 0,
		.files = c ? c->done : 0,
		.bytes = c ? c->done_bytes : 0,
	};
	int r;

	pthread_mutex_unlock(&p->lock);
	if (watch->fn && c)
		watch->fn(&now, watch->ctx);
	r = task_wanted(task, err);
	pthread_mutex_lock(&p->lock);
	return r;
}

/* lock held */
static size_t count_open(const struct promises *p, const struct promises_scope *s)
{
	size_t n = 0;

	for (const struct promises_walk *w = p->walks; w; w = w->next)
		n += may_be_in(w, s);
	for (const struct promising *c = p->first; c; c = c->after)
		n += is_in(c, s);
	return n;
}

/* lock held */
static int say_stuck(const struct promising *c, struct err *err)
{
	if (c->record.remote)
		return err_wrap(err, c->stuck.code,
				"'%s' is not fetched yet ('rm' of its clones gives it up)",
				promising_name(c));
	return err_wrap(err, c->stuck.code, "'%s' is not captured yet",
			c->dir ? c->dir : "a project");
}

static int wait_locked(struct promises *p, const struct task *task,
		       const struct promises_scope *scope, const struct engine_watch *watch,
		       size_t most, struct err *err)
{
	struct promising *c;
	int r;

	while (count_open(p, scope) >= most) {
		c = find_open(p, scope);
		if (c && !c->started && !promises_are_beginning(p) && !p->ending) {
			c->stuck = (struct err){ 0 };
			start_thread(c);
		}
		if (c && c->stuck.code < 0 && scope->despite)
			break;
		if (c && c->stuck.code < 0) {
			*err = c->stuck;
			return say_stuck(c, err);
		}
		r = tell(p, c, task, watch, err);
		if (r < 0)
			return r;
		promises_wait_ms(p, TELL_MS);
	}
	return 0;
}

/* lock held; wait until fewer than `most` are under way. */
static int await(struct promises *p, const struct task *task, const struct promises_scope *scope,
		 const struct engine_watch *watch, size_t most, struct err *err)
{
	int r;

	p->awaited++;
	r = wait_locked(p, task, scope, watch, most, err);
	p->awaited--;
	return r;
}

bool promises_have_room(struct promises *p)
{
	LOCKED(&p->lock);

	return count_open(p, &everything) < OPEN_MAX;
}

int promises_await_room(struct promises *p, const struct task *task,
			const struct engine_watch *watch, struct err *err)
{
	LOCKED(&p->lock);

	return await(p, task, &everything, watch, OPEN_MAX, err);
}

int promises_await_closing(struct promises *p, const struct task *task,
			   const struct catalog_id *project, const struct engine_watch *watch,
			   struct err *err)
{
	const struct promising *c;
	int r;
	LOCKED(&p->lock);

	while ((c = promises_find_closing(p, project))) {
		if (p->ending)
			return err_set(err, -ECANCELED, "cowfsd ends");
		r = tell(p, c, task, watch, err);
		if (r < 0)
			return r;
		promises_wait_ms(p, TELL_MS);
	}
	return 0;
}

int promises_enter(struct promises *p, const struct task *task, const struct promises_scope *scope,
		   const struct engine_watch *watch, struct err *err)
{
	LOCKED(&p->lock);
	int r = await(p, task, scope, watch, 1, err);

	p->inside += r >= 0;
	return r;
}

void promises_leave(struct promises *p)
{
	pthread_mutex_lock(&p->lock);
	p->inside--;
	pthread_mutex_unlock(&p->lock);
}

void promises_news(struct promises *p, const struct catalog_id *snapshot,
		   struct engine_capturing *ret)
{
	*ret = (struct engine_capturing){ 0 };
	pthread_mutex_lock(&p->lock);
	for (const struct promising *c = p->first; c; c = c->after)
		if (promising_is_of(c, snapshot))
			*ret = promising_news(c);
	pthread_mutex_unlock(&p->lock);
}

void promises_project_news(struct promises *p, const struct catalog_id *project,
			   struct engine_capturing *ret)
{
	*ret = (struct engine_capturing){ 0 };
	pthread_mutex_lock(&p->lock);
	for (const struct promising *c = p->first; c; c = c->after)
		if (promising_is_open(c) && catalog_id_same(&c->record.project, project))
			*ret = promising_news(c);
	pthread_mutex_unlock(&p->lock);
}

/* lock held */
static int add_lost(const struct promising *c, struct engine_paths *ret, struct err *err)
{
	const struct promise *one;
	char *path;

	ret->list = calloc(c->lost + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	for (size_t pos = 0; ret->n < c->lost && (one = map_next(&c->by_id, &pos));) {
		if (one->state != PROMISE_LOST)
			continue;
		path = strdup(one->path ? one->path : "?");
		if (!path)
			return err_nomem(err);
		ret->list[ret->n++] = (struct engine_path){ .path = path, .status = 'D' };
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct engine_path *)a)->path, ((const struct engine_path *)b)->path);
}

int promises_lost(struct promises *p, const struct catalog_id *snapshot, struct engine_paths *ret,
		  struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&p->lock);
	for (const struct promising *c = p->first; c && r >= 0 && ret->n == 0; c = c->after)
		if (c->indexed && c->lost > 0 && promising_is_of(c, snapshot))
			r = add_lost(c, ret, err);
	pthread_mutex_unlock(&p->lock);
	if (r >= 0 && ret->n > 0)
		qsort(ret->list, ret->n, sizeof(*ret->list), by_path);
	return r;
}
