/*
 * How threads share the work. The unit of work is a directory: a thread opens and lists it, and
 * takes everything in it except directories. Any thread may take these then, those found last
 * first, so few are open or in memory at a time. The thread that finishes the last directory inside
 * another one stores the tree of that, and continues upwards.
 *
 * Only the end shows whether a file with several names has more than one of them in the tree, so a
 * directory with such a name waits for the end, and so do those above.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/sys.h"
#include "snapshot/capture/capture-i.h"
#include "snapshot/capture/scout.h"

/* --- what there is to do ------------------------------------------------------------------ */

/* There are directories in it to be entered. */
static void offer(struct walk *w, struct dir *d)
{
	LOCKED(&w->lock);
	d->below = w->stack;
	w->stack = d;
	if (w->n_idle > 0)
		pthread_cond_broadcast(&w->more);
}

/* Wait for a directory to enter; false if there are none left. */
static bool next_dir(struct worker *k, struct dir **ret_parent, struct item **ret)
{
	struct walk *w = k->walk;
	struct dir *d;

	pthread_mutex_lock(&w->lock);
	while (!w->ended && !w->stack) {
		w->n_idle++;
		if (k->tells)
			pthread_cond_timedwait(&w->more, &w->lock, &k->due);
		else
			pthread_cond_wait(&w->more, &w->lock);
		w->n_idle--;
		pthread_mutex_unlock(&w->lock);
		walk_pulse(k);
		pthread_mutex_lock(&w->lock);
	}
	d = w->ended ? NULL : w->stack;
	if (d) {
		*ret_parent = d;
		*ret = &d->items[d->dirs[d->next_dir++]];
		if (d->next_dir == d->n_dirs)
			w->stack = d->below;
	}
	pthread_mutex_unlock(&w->lock);
	return d != NULL;
}

static void keep_waiting(struct walk *w, struct dir *d)
{
	LOCKED(&w->lock);
	if (d->parent)
		d->parent->waits = true;
	*w->waiting_end = d;
	w->waiting_end = &d->next_waiting;
}

static void end(struct walk *w)
{
	LOCKED(&w->lock);
	walk_end(w);
}

/* One of the things that `d` waited for is done; if it was the last, go up. */
static int leave(struct worker *k, struct dir *d, struct err *err)
{
	struct dir *parent;
	int r;

	for (; d && atomic_fetch_sub(&d->pending, 1) == 1; d = parent) {
		parent = d->parent;
		if (d->waits || k->walk->careful) {
			keep_waiting(k->walk, d);
		} else {
			r = put_dir(k, d, err);
			if (r < 0)
				return r;
			walk_drop(k->walk, d);
		}
		if (!parent)
			end(k->walk);
	}
	return 0;
}

/* --- threads ---------------------------------------------------------------------------- */

static int enter(struct worker *k, struct dir *parent, struct item *item, struct err *err)
{
	struct dir *d = NULL;
	int r = take_listed_dir(k, parent, item, &d, err);

	if (r < 0)
		return r;
	if (!d)
		return leave(k, parent, err);
	if (d->n_dirs > 0)
		offer(k->walk, d);
	return leave(k, d, err);
}

static void *walk_dirs(void *ctx)
{
	struct worker *k = ctx;
	struct dir *parent;
	struct item *item;

	while (next_dir(k, &parent, &item)) {
		struct err err = { 0 };
		int r = enter(k, parent, item, &err);

		if (r < 0)
			walk_fail(k->walk, r, &err);
	}
	return NULL;
}

static void run_workers(struct walk *w)
{
	struct worker *own = &w->workers[0];
	unsigned n;

	/* One that cannot be started is no failure: the others do its work. */
	for (n = 1; n < w->n_workers; n++)
		if (spread_start(&w->workers[n].thread, n, walk_dirs, &w->workers[n]) < 0)
			break;
	walk_dirs(own);
	walk_tell(w);
	while (n > 1)
		spread_join(&w->workers[--n].thread);
}

/* --- the whole -------------------------------------------------------------------------- */

static bool excludes(const void *walk, const struct stat *st)
{
	return walk_excludes(walk, st);
}

/* Of a capture with signatures nobody can say without them how much is to be read. */
static void begin_scout(struct walk *w, int top)
{
	const struct capture_options *o = w->options;
	const struct scout_options so = { o->unasked->spare, excludes, w };

	if (!w->known && !o->only && !o->part)
		w->ration.scout = scout_begin(top, &so);
}

/* The trees that name promises are replaced when these are kept. */
static void promise_files(struct walk *w, int top)
{
	if (w->options->unasked)
		begin_scout(w, top);
	else
		batch_expect_passing_trees(w->batch);
	for (unsigned i = 0; i < w->n_workers; i++) {
		w->workers[i].reader.lazy = w->options->lazy;
		w->workers[i].reader.ration = w->options->unasked ? &w->ration : NULL;
	}
}

static int enter_top(struct walk *w, struct err *err)
{
	int fd = w->options->place ? sys_open_place(w->path, w->options->place)
				   : dir_open(AT_FDCWD, w->path),
	    r;
	struct dir *d = NULL;
	struct stat st;

	if (fd == -ESTALE || (fd == -ELOOP && w->options->place))
		return err_set(err, -EBUSY, "'%s' became another directory just now", w->path);
	if (fd < 0)
		return dir_fail(w->path, NULL, NULL, err_wrap(err, fd, "cannot be opened"), err);
	if (fstat(fd, &st) == 0)
		w->home = st.st_dev;
	w->times_tell = (w->known || w->options->lazy) && sys_dir_times_tell(fd);
	/* What another machine changes shows late, or never. */
	if (w->options->lazy && w->times_tell)
		promise_files(w, fd);
	/* Without them everything is walked. */
	if (w->known && w->times_tell && !w->careful)
		w->marks = calloc(signatures_numbers(w->known), sizeof(*w->marks));
	r = take_dir(&w->workers[0], NULL, &w->top, fd, &d, err);
	if (r < 0)
		return r;
	if (r == NODE_CHANGED)
		err_set(err, -ENOENT, "was removed");
	if (r > 0)
		return dir_fail(w->path, NULL, NULL, err->code, err);
	if (!d)
		return dir_fail(w->path, NULL, NULL,
				err_set(err, -EINVAL, "is itself to be left out"), err);
	if (d->n_dirs > 0)
		offer(w, d);
	return leave(&w->workers[0], d, err);
}

int walk_run(struct walk *w, struct err *err)
{
	int r = enter_top(w, err);

	if (r < 0)
		return r;
	if (w->ended)
		walk_tell(w);
	else
		run_workers(w);
	if (w->failure.code == 0)
		return r;
	*err = w->failure;
	return err->code;
}
