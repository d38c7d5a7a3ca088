/*
 * How promises of a lazy fetch are kept. The thread of the fetch stores frames that have come. A
 * reader of a file waits for that thread, so one frame serves all readers that wait for something
 * in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/vec.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

#define LOOK_MS   100
#define NEWS_MS   200
#define SILENT_MS 20000 /* while not even the indexes are there */

/* --- the thread that stores ----------------------------------------------------------------- */

/* Could it still be kept? */
static bool is_open(const struct promise *one)
{
	return one->state == PROMISE_OPEN && !one->wrong;
}

/* lock held; one that somebody waits for.  Those that are not here are asked for. */
static struct promise *next_wanted(struct promising *c)
{
	if (!c->wants_due)
		return NULL;
	for (size_t i = 0; i < c->n_wanted; i++)
		if (is_open(c->wanted[i]) &&
		    supply_has(c->supply, promise_file(c, c->wanted[i]), true))
			return c->wanted[i];
	c->wants_due = false;
	return NULL;
}

static bool is_here(const struct promising *c, const struct promise *one)
{
	const struct supply_file *f = promise_file(c, one);

	if (f->kind == OBJECT_CHUNK)
		return supply_has_object(c->supply, f);
	return c->large_due && supply_has(c->supply, f, false);
}

struct promise *promising_next_here(struct promising *c)
{
	struct promise *one = c->supply ? next_wanted(c) : NULL;

	if (one || !c->supply)
		return one;
	for (; c->next < c->n; c->next++)
		if (is_open(c->list[c->next]) && is_here(c, c->list[c->next]))
			return c->list[c->next++];
	c->large_due = false; /* each of them was looked at */
	return NULL;
}

/* Each object has its SHA-256, so it is what the remote means, and comes no better next time. */
static void note_wrong(struct promising *c, struct promise *one, const struct err *why)
{
	LOCKED(&c->all->lock);

	if (one->wrong)
		return;
	one->wrong = true;
	c->n_wrong++;
	err_set(&c->wrong, -EIO, "'%s' cannot be fetched: %s", one->path ? one->path : "a file",
		why->msg);
	log_warn("%s", c->wrong.msg);
}

int promising_fetch_one(struct promising *c, struct batch *b, struct promise *one, struct err *err)
{
	struct content content;
	int r = supply_content(c->supply, b, &c->known, promise_file(c, one), false, &content, err);

	if (r == 0)
		one->content = content;
	if (r == -EPROTO)
		note_wrong(c, one, err);
	/* The frame comes again, and supply_check() says so; or others are fetched first. */
	return r == -EBADMSG || r == -EPROTO ? -EAGAIN : r;
}

/* lock held; begin again at the top of the list, since more has come */
static void look_again(struct promising *c)
{
	const uint64_t completed = supply_completed(c->supply);

	c->next = 0;
	c->wants_due = true;
	/* Whoever goes first may have kept the thread from looking the last time. */
	c->large_due |= completed != c->completed;
	c->completed = completed;
}

static int say_unplaced(struct err *err)
{
	return err_set(err, -EIO,
		       "the remote has not said yet where it is; any snap command asks again");
}

/* lock held, but while it waits; nobody waits for ever if the remote is away */
static int await_indexes(struct promising *c, struct err *err)
{
	const uint64_t now = engine_clock_ms();

	if (c->asked_ms == 0)
		c->asked_ms = now;
	promises_wait_ms(c->all, NEWS_MS);
	return now - c->asked_ms < SILENT_MS ? 0 : say_unplaced(err);
}

int promising_await_news(struct promising *c, struct err *err)
{
	struct promises *p = c->all;
	int r;

	if (!c->supply)
		return await_indexes(c, err);
	if (c->done < c->n && !c->wants_due)
		promises_wait_ms(p, NEWS_MS);
	look_again(c);
	r = supply_check(c->supply, err);
	if (r < 0 || c->n_wrong == 0 || c->done + c->n_wrong < c->n)
		return r;
	*err = c->wrong;
	return err->code;
}

/* --- whoever needs a file ------------------------------------------------------------------- */

/* lock held */
static int want(struct promising *c, struct promise *one, struct err *err)
{
	if (!VEC_ROOM(c->wanted, c->n_wanted, c->cap_wanted))
		return err_nomem(err);
	c->wanted[c->n_wanted++] = one;
	c->wants_due = true;
	pthread_cond_broadcast(&c->all->changed);
	return 0;
}

/* lock held */
static void want_no_more(struct promising *c, const struct promise *one)
{
	for (size_t i = 0; i < c->n_wanted; i++)
		if (c->wanted[i] == one) {
			c->wanted[i] = c->wanted[--c->n_wanted];
			return;
		}
}

/* lock held; 0 if there is hope */
static int check_wait(struct promising *c, const struct supply_since *since,
		      const struct promise *one, struct err *err)
{
	if (c->unneeded || c->all->ending)
		return err_set(err, -EIO, "nobody fetches it any more");
	if (one->wrong)
		return err_set(err, -EIO, "the remote's object for it is not a file");
	if (c->supply)
		return supply_check_wait(c->supply, since, promise_file(c, one), err);
	return engine_clock_ms() - since->ms < SILENT_MS ? 0 : say_unplaced(err);
}

int promising_await(struct promising *c, struct promise *one, struct err *err)
{
	struct supply_since since = { .ms = engine_clock_ms() };
	int r;

	if (c->supply)
		since = supply_begin_wait(c->supply);
	c->in_use++;
	c->in_hand++;
	r = want(c, one, err);
	while (r == 0 && one->state == PROMISE_OPEN) {
		promises_wait_ms(c->all, LOOK_MS);
		r = one->state == PROMISE_OPEN ? check_wait(c, &since, one, err) : 0;
	}
	want_no_more(c, one);
	if (r < 0) {
		one->unread = true;
		err_wrap(err, r, "'%s'", one->path ? one->path : "a file");
	}
	c->in_use--;
	c->in_hand--;
	pthread_cond_broadcast(&c->all->changed);
	return r;
}

/* --- the process that brings frames ----------------------------------------------------------- */

/* lock held; under way or not */
static struct promising *find_id(const struct promises *p, const char *id)
{
	char hex[CATALOG_HEX_SIZE];

	for (struct promising *c = p->first; c; c = c->after)
		if (c->record.remote && strcmp(catalog_id_hex(&c->record.id, hex), id) == 0)
			return c;
	return NULL;
}

int promises_supply(struct promises *p, const struct engine_supply_options *o,
		    struct engine_supply *ret, struct err *err)
{
	struct supply *supply;
	struct promising *c;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	c = find_id(p, o->id);
	/* If cowfsd ends, the next command starts both. */
	ret->over = p->ending || !c || !promising_is_open(c);
	ret->ended = ret->over && !p->ending;
	if (ret->over) {
		pthread_mutex_unlock(&p->lock);
		return 0;
	}
	supply = c->supply;
	c->in_use++;
	if (!supply)
		promises_wait_ms(p, NEWS_MS);
	r = supply ? supply_report(supply, o, err) : 0;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (supply && r == 0 && !o->idle)
		supply_next(supply, o, &ret->range);
	pthread_mutex_lock(&p->lock);
	c->in_use--;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return r < 0 ? r : 0;
}

/* --- what people see ------------------------------------------------------------------------- */

/* lock held */
static int add_unread(const struct promising *c, struct engine_paths *ret, struct err *err)
{
	const struct promise *one;
	char *path;

	for (size_t pos = 0; (one = map_next(&c->by_id, &pos));) {
		if (!one->unread || one->state != PROMISE_OPEN)
			continue;
		path = strdup(one->path ? one->path : "?");
		if (!path || !VEC_ONE_MORE(ret->list, ret->n)) {
			free(path);
			return err_nomem(err);
		}
		ret->list[ret->n++] = (struct engine_path){ .path = path, .status = 'D' };
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct engine_path *)a)->path, ((const struct engine_path *)b)->path);
}

int promises_unread(struct promises *p, const struct catalog_id *snapshot, struct engine_paths *ret,
		    char **ret_why, struct err *err)
{
	int r = 0;

	pthread_mutex_lock(&p->lock);
	for (const struct promising *c = p->first; c && r >= 0; c = c->after) {
		if (!c->record.remote || !promising_is_open(c) ||
		    !catalog_id_same(&c->record.snapshot, snapshot))
			continue;
		if (c->indexed)
			r = add_unread(c, ret, err);
		if (c->stuck.code < 0 && !*ret_why)
			*ret_why = strdup(c->stuck.msg);
	}
	pthread_mutex_unlock(&p->lock);
	if (r >= 0 && ret->n > 0)
		qsort(ret->list, ret->n, sizeof(*ret->list), by_path);
	return r;
}
