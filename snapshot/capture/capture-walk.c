/*
 * The state that all threads of a walk share: its directories, which of them are open, and its
 * progress.
 *
 * A directory keeps its descriptor while it has subdirectories to enter. Of the idle ones
 * DIR_FDS_MAX stay open besides the top; the least recently used is closed, and reopened step by
 * step from the nearest open one above. Each step must find the same directory as before; ".."
 * would follow a directory that somebody moved.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "base/vec.h"
#include "snapshot/capture/capture-i.h"
#include "snapshot/capture/scout.h"

#define DIR_FDS_MAX 32
#define PROGRESS_MS 100

/* --- descriptors ------------------------------------------------------------------------ */

void walk_end(struct walk *w)
{
	w->ended = true;
	scout_stop(w->ration.scout);
	pthread_cond_broadcast(&w->more);
}

void walk_fail(struct walk *w, int code, const struct err *err)
{
	LOCKED(&w->lock);
	if (w->failure.code == 0)
		w->failure = *err;
	w->failure.code = w->failure.code ? w->failure.code : code;
	walk_end(w);
}

/* The capture was cancelled: each thread finishes its item and stops. */
static void walk_stop(struct walk *w)
{
	struct err err = { 0 };
	int r = err_set(&err, -ECONNABORTED, "'%s': nobody waits for it any more", w->path);

	walk_fail(w, r, &err);
}

/* The list holds open, idle directories; the top is not in it, and so stays open. */
static void list_remove(struct walk *w, struct dir *d)
{
	if (d->newer)
		d->newer->older = d->older;
	else
		w->newest = d->older;
	if (d->older)
		d->older->newer = d->newer;
	else
		w->oldest = d->newer;
	d->newer = d->older = NULL;
	w->n_open--;
}

static void list_add(struct walk *w, struct dir *d)
{
	d->older = w->newest;
	if (w->newest)
		w->newest->newer = d;
	else
		w->oldest = d;
	w->newest = d;
	w->n_open++;
}

/* With the lock. */
static void use(struct walk *w, struct dir *d)
{
	if (d->users++ == 0 && d->parent)
		list_remove(w, d);
}

/* With the lock.  A descriptor that is to be closed without it, or -1. */
static int unuse(struct walk *w, struct dir *d)
{
	struct dir *old;

	assert(d->users > 0);
	if (--d->users > 0 || !d->parent)
		return -1;
	if (d->next_dir == d->n_dirs)
		return TAKE_FD(d->fd);
	list_add(w, d);
	if (w->n_open <= DIR_FDS_MAX)
		return -1;
	old = w->oldest;
	list_remove(w, old);
	return TAKE_FD(old->fd);
}

void walk_unuse(struct walk *w, struct dir *d)
{
	AUTO_CLOSE int fd = -1;

	LOCKED(&w->lock);
	fd = unuse(w, d);
}

static int moved(struct err *err)
{
	return err_set(err, -ESTALE, "was moved while it was captured");
}

/* Open a directory again, from the one above. */
static int reopen(int above, const struct dir *d, struct err *err)
{
	AUTO_CLOSE int fd = dir_open(above, d->item->name);
	struct file_id id;
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR)
		return moved(err);
	if (fd < 0)
		return err_wrap(err, fd, "cannot be opened again");
	if (fstat(fd, &st) < 0)
		return err_sys(err, "cannot be examined");
	id = file_id_of(&st);
	return file_id_equal(&d->id, &id) ? TAKE_FD(fd) : moved(err);
}

/* The one nearest to `d` that is open, in use now; and the one in it on the way to `d`. */
static struct dir *use_nearest(struct walk *w, struct dir *d, struct dir **ret_next)
{
	*ret_next = NULL;
	for (; d->fd < 0; d = d->parent)
		*ret_next = d;
	use(w, d);
	return d;
}

int walk_use(struct walk *w, struct dir *d, int *ret_fd, struct err *err)
{
	struct dir *above, *next;
	int fd, r = 0;

	pthread_mutex_lock(&w->lock);
	above = use_nearest(w, d, &next);
	while (above != d) {
		fd = above->fd;
		pthread_mutex_unlock(&w->lock);
		r = reopen(fd, next, err);
		pthread_mutex_lock(&w->lock);
		if (r >= 0 && next->fd >= 0) {
			close(r); /* somebody was faster */
		} else if (r >= 0) {
			next->fd = r;
			/* As `use` finds it. */
			if (next->users == 0)
				list_add(w, next);
		}
		cleanup_close(&(int){ unuse(w, above) });
		if (r < 0)
			break;
		above = use_nearest(w, d, &next);
	}
	if (r >= 0)
		*ret_fd = d->fd;
	pthread_mutex_unlock(&w->lock);
	return r < 0 ? dir_fail(w->path, next, NULL, r, err) : 0;
}

/* --- which there are ------------------------------------------------------------------------ */

void walk_add(struct walk *w, struct dir *d)
{
	LOCKED(&w->lock);
	d->next = w->dirs;
	if (d->next)
		d->next->prev = d;
	w->dirs = d;
}

void walk_drop(struct walk *w, struct dir *d)
{
	pthread_mutex_lock(&w->lock);
	if (d->next)
		d->next->prev = d->prev;
	if (d->prev)
		d->prev->next = d->next;
	else
		w->dirs = d->next;
	pthread_mutex_unlock(&w->lock);
	dir_free(d);
}

/* --- how far it is ------------------------------------------------------------------------ */

void walk_stats(const struct walk *w, struct capture_stats *ret)
{
	struct capture_stats s = { 0 };

	for (unsigned i = 0; i < w->n_workers; i++) {
		s.files += atomic_load_explicit(&w->workers[i].files, memory_order_relaxed);
		s.dirs += atomic_load_explicit(&w->workers[i].dirs, memory_order_relaxed);
		s.bytes += atomic_load_explicit(&w->workers[i].bytes, memory_order_relaxed);
	}
	s.bytes += w->links.bytes;
	*ret = s;
}

void walk_promised(const struct walk *w, struct capture_promised *more)
{
	for (unsigned i = 0; i < w->n_workers; i++) {
		more->files += w->workers[i].reader.promised.files;
		more->bytes += w->workers[i].reader.promised.bytes;
	}
}

void walk_tell(struct walk *w)
{
	struct capture_stats s;

	if (w->options->stop && w->options->stop(w->options->stop_ctx))
		walk_stop(w);
	if (!w->options->progress)
		return;
	pthread_mutex_lock(&w->links.lock);
	walk_stats(w, &s);
	pthread_mutex_unlock(&w->links.lock);
	w->options->progress(&s, w->options->progress_ctx);
}

static struct timespec in_a_while(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += PROGRESS_MS * 1000000L;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

void walk_pulse(struct worker *k)
{
	struct timespec now;

	if (!k->tells)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec < k->due.tv_sec ||
	    (now.tv_sec == k->due.tv_sec && now.tv_nsec < k->due.tv_nsec))
		return;
	walk_tell(k->walk);
	k->due = in_a_while();
}

static void pulse(void *ctx)
{
	walk_pulse(ctx);
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

void worker_count(struct worker *k, const struct capture_stats *more)
{
	count(&k->files, more->files);
	count(&k->dirs, more->dirs);
	count(&k->bytes, more->bytes);
	walk_pulse(k);
}

/* --- the whole -------------------------------------------------------------------------- */

static int find_excluded(struct walk *w, struct err *err)
{
	const struct capture_options *o = w->options;
	struct stat st;

	if (o->n_exclude == 0)
		return 0;
	w->exclude = calloc(o->n_exclude, sizeof(*w->exclude));
	if (!w->exclude)
		return err_nomem(err);
	for (size_t i = 0; i < o->n_exclude; i++) {
		const char *path = o->exclude[i];

		if (stat(path, &st) < 0) {
			if (errno != ENOENT)
				return err_sys(err, "'%s': cannot be examined", path);
			continue;
		}
		if (!S_ISDIR(st.st_mode))
			return err_set(err, -ENOTDIR, "'%s': only a directory can be left out",
				       path);
		w->exclude[w->n_exclude++] = file_id_of(&st);
	}
	return 0;
}

bool walk_excludes(const struct walk *w, const struct stat *st)
{
	const struct file_id id = file_id_of(st);

	return VEC_HAS(it, w->exclude, w->n_exclude, file_id_equal(it, &id));
}

static int worker_init(struct worker *k, struct walk *w, struct err *err)
{
	int r;

	k->walk = w;
	r = node_reader_init(&k->reader, w->batch, err);
	k->reader.pulse = pulse;
	k->reader.pulse_ctx = k;
	k->reader.options = w->options;
	r = r < 0 ? r : tree_builder_new(w->batch, &k->builder, err);
	/* Whoever could not wait for the files will look at the names now. */
	if (r >= 0 && w->options->lazy && !w->options->unasked)
		tree_builder_offer(k->builder);
	return r;
}

static void worker_done(struct worker *k)
{
	node_reader_done(&k->reader);
	tree_builder_free(k->builder);
	buf_done(&k->record);
	buf_done(&k->path);
	buf_done(&k->inos);
	buf_done(&k->same);
}

static unsigned count_threads(unsigned wanted)
{
	const unsigned n = wanted ? wanted : sys_processors();

	return n > CAPTURE_THREADS_MAX ? CAPTURE_THREADS_MAX : n;
}

/* The lock is held only for moments, so spinning beats sleeping. */
static void walk_init_lock(struct walk *w)
{
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
	w->lock = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
	pthread_mutex_init(&w->lock, NULL);
#endif
}

int walk_init(struct walk *w, struct batch *b, const char *path,
	      const struct capture_options *options, const struct signatures *known, bool careful,
	      struct err *err)
{
	const unsigned n = count_threads(options->threads);
	int r;

	*w = (struct walk){
		.options = options,
		.path = path,
		.batch = b,
		.careful = careful,
		.known = known,
		.top = { .name = ROOT_TOP, .name_len = strlen(ROOT_TOP) },
	};
	w->waiting_end = &w->waiting;
	links_init(&w->links);
	w->links.apart = options->apart;
	unread_init(&w->unread);
	unread_init(&w->gits);
	walk_init_lock(w);
	ration_init(&w->ration, options->unasked);
	pthread_cond_init(&w->more, NULL);
	if (known)
		w->top.old = signatures_top(known);
	w->workers = calloc(n, sizeof(*w->workers));
	if (!w->workers)
		return err_nomem(err);
	r = find_excluded(w, err);
	if (r < 0)
		return r;
	r = signatures_draft_new(known, &w->draft, err);
	for (unsigned i = 0; r >= 0 && i < n; i++) {
		r = worker_init(&w->workers[i], w, err);
		w->n_workers++;
	}
	w->workers[0].tells = options->progress || options->stop;
	w->workers[0].due = in_a_while();
	return r;
}

void walk_done(struct walk *w)
{
	/* First of all: the scout looks at what is excluded. */
	ration_done(&w->ration);
	while (w->dirs)
		walk_drop(w, w->dirs);
	if (w->top.kind != ITEM_ABSENT)
		node_free(w->top.node);
	for (unsigned i = 0; i < w->n_workers; i++)
		worker_done(&w->workers[i]);
	free(w->workers);
	signatures_draft_free(w->draft);
	links_done(&w->links);
	unread_done(&w->unread);
	unread_done(&w->gits);
	free(w->exclude);
	free(w->marks);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->more);
}
