/*
 * Directories under inotify, each with the places that it belongs to. The kernel only says that
 * something happened; a capture finds out what changed. So no event is wrong, and a superfluous one
 * costs a capture.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/path.h"
#include "base/strlist.h"
#include "engine/watch/watch-i.h"

#define PLACES_MAX  64
#define WATCHES_MAX 100000
#define NAMES_MASK                                                                          \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB | \
	 IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)
/* A log that is appended to is never closed. */
#define FILES_MASK (NAMES_MASK | IN_MODIFY)

struct watched {
	int wd;
	char *path;             /* owned */
	uint64_t places, whole; /* bit n: place n; of those, with all below */
};

struct place {
	char *path;       /* owned */
	bool whole, lost; /* lost: there was no such directory, or it is gone */
	int wd;           /* 0: it is not watched */
	dev_t dev;
	ino_t ino;
};

struct watch_tree {
	int fd;
	struct map dirs; /* wd -> struct watched, owned */
	struct place places[PLACES_MAX];
	uint64_t partial; /* places of which some directory is not watched */
	dev_t store_dev;  /* the directory of the store */
	ino_t store_ino;
};

static uint64_t hash_wd(const void *key)
{
	return (uint64_t) * (const int *)key * UINT64_C(0x9e3779b97f4a7c15);
}

static bool equal_wd(const void *a, const void *b)
{
	return *(const int *)a == *(const int *)b;
}

int tree_open(const char *store, struct watch_tree **ret, struct err *err)
{
	struct watch_tree *t = calloc(1, sizeof(*t));
	struct stat st;

	if (!t)
		return err_nomem(err);
	if (stat(store, &st) == 0) {
		t->store_dev = st.st_dev;
		t->store_ino = st.st_ino;
	}
	t->dirs = MAP_INIT(hash_wd, equal_wd);
	t->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (t->fd < 0) {
		const int r = err_sys(err, "watching files");

		free(t);
		return r;
	}
	*ret = t;
	return 0;
}

static void watched_free(struct watched *w)
{
	free(w->path);
	free(w);
}

void tree_free(struct watch_tree *t)
{
	struct watched *w;
	size_t pos = 0;

	if (!t)
		return;
	while ((w = map_next(&t->dirs, &pos)))
		watched_free(w);
	map_done(&t->dirs);
	for (size_t i = 0; i < PLACES_MAX; i++)
		free(t->places[i].path);
	close(t->fd);
	free(t);
}

int tree_fd(const struct watch_tree *t)
{
	return t->fd;
}

bool tree_is_partial(const struct watch_tree *t, unsigned number)
{
	return number >= PLACES_MAX || t->places[number].lost || (t->partial >> number & 1);
}

bool tree_is_lost(const struct watch_tree *t, unsigned number)
{
	return number < PLACES_MAX && t->places[number].lost;
}

/* --- adding -------------------------------------------------------------------------------- */

/* The watch, or an error. */
static int enter(struct watch_tree *t, int wd, const char *path, uint64_t places, uint64_t whole)
{
	struct watched *w = map_get(&t->dirs, &wd);

	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return -ENOMEM;
		w->wd = wd;
		if (map_add(&t->dirs, &w->wd, w, NULL) < 0) {
			free(w);
			return -ENOMEM;
		}
	}
	/* A directory that was renamed is the same one under another name. */
	if (!w->path || strcmp(w->path, path) != 0) {
		free(w->path);
		w->path = strdup(path);
	}
	w->places |= places;
	w->whole |= whole;
	return w->path ? wd : -ENOMEM;
}

static int watch_dir(struct watch_tree *t, const char *path, uint64_t places, uint64_t whole,
		     uint32_t flags)
{
	const uint32_t mask = whole == places ? NAMES_MASK : FILES_MASK;
	int wd;

	if (t->dirs.n >= WATCHES_MAX)
		return -ENOSPC;
	wd = inotify_add_watch(t->fd, path, mask | flags | IN_MASK_ADD);
	return wd < 0 ? -errno : enter(t, wd, path, places, whole);
}

/* What a round writes there would have the next one look again, and so on. */
static bool is_store(const struct watch_tree *t, const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_dev == t->store_dev && st.st_ino == t->store_ino;
}

/* Git's own folder changes with every command of git's, and is never what a rule is about. */
static bool may_be_dir(const struct dirent *d)
{
	return (d->d_type == DT_DIR || d->d_type == DT_UNKNOWN) && strcmp(d->d_name, ".") != 0 &&
	       strcmp(d->d_name, "..") != 0 && strcmp(d->d_name, ".git") != 0;
}

static int add_names(const struct watch_tree *t, const char *path, struct strlist *more)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int r = 0;

	if (!dir)
		return 0;
	while (r >= 0 && (d = readdir(dir))) {
		AUTO_FREE char *one = may_be_dir(d) ? path_join(path, d->d_name) : NULL;

		if (may_be_dir(d) && !(one && d->d_ino == t->store_ino && is_store(t, one)))
			r = strlist_take(more, TAKE_PTR(one));
	}
	closedir(dir);
	return r;
}

/* First the watch, then the names: what is made meanwhile is seen by one or the other. */
static int watch_below(struct watch_tree *t, const char *top, uint64_t places)
{
	CLEANUP(strlist_done) struct strlist left = { 0 };
	int r = add_names(t, top, &left);

	while (r >= 0 && left.n > 0) {
		AUTO_FREE char *one = left.list[--left.n];

		left.list[left.n] = NULL;
		r = watch_dir(t, one, places, places, IN_DONT_FOLLOW);
		if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
			r = 0;
		else if (r >= 0)
			r = add_names(t, one, &left);
	}
	if (r < 0)
		t->partial |= places;
	return r;
}

static int watch_new(struct watch_tree *t, const char *path, uint64_t places)
{
	int r = is_store(t, path) ? -ENOENT : watch_dir(t, path, places, places, IN_DONT_FOLLOW);

	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
		return 0;
	return r < 0 ? r : watch_below(t, path, places);
}

/* A place may be named by a symlink; nothing below it is. */
static int watch_place(struct watch_tree *t, unsigned number)
{
	const uint64_t bit = UINT64_C(1) << number;
	struct place *p = &t->places[number];
	struct stat st = { 0 };
	int r;

	/* First: one that takes its place meanwhile is found to be another. */
	r = stat(p->path, &st) < 0 ? -errno : 0;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	if (r >= 0)
		r = watch_dir(t, p->path, bit, p->whole ? bit : 0, 0);
	p->wd = r >= 0 ? r : 0;
	p->lost = r == -ENOENT || r == -ENOTDIR || r == -EACCES;
	if (p->lost)
		return 0;
	if (r >= 0 && p->whole)
		r = watch_below(t, p->path, bit);
	if (r < 0)
		t->partial |= bit;
	return r == -ENOMEM ? r : 0;
}

int tree_add(struct watch_tree *t, const char *path, bool whole, unsigned number, struct err *err)
{
	if (number >= PLACES_MAX)
		return 0;
	free(t->places[number].path);
	t->places[number] = (struct place){ .path = strdup(path), .whole = whole };
	if (!t->places[number].path)
		return err_nomem(err);
	return watch_place(t, number) < 0 ? err_nomem(err) : 0;
}

/* At once: that each watch is gone is what the kernel says only as long as its queue has room. */
static void leave_place(struct watch_tree *t, unsigned number)
{
	const uint64_t bit = UINT64_C(1) << number;
	struct watched *w;
	size_t pos = 0;

	while ((w = map_next(&t->dirs, &pos))) {
		if (!(w->places & bit))
			continue;
		w->places &= ~bit;
		w->whole &= ~bit;
		if (w->places != 0)
			continue;
		inotify_rm_watch(t->fd, w->wd);
		map_remove(&t->dirs, &w->wd);
		watched_free(w);
	}
	t->partial &= ~bit;
}

bool tree_is_other(const struct watch_tree *t, unsigned number)
{
	const struct place *p = number < PLACES_MAX ? &t->places[number] : NULL;
	struct stat st;

	return p && p->path &&
	       (p->lost || stat(p->path, &st) < 0 || st.st_dev != p->dev || st.st_ino != p->ino);
}

int tree_find(struct watch_tree *t, unsigned number, struct err *err)
{
	if (!tree_is_other(t, number))
		return 0;
	leave_place(t, number);
	return watch_place(t, number) < 0 ? err_nomem(err) : 0;
}

/* --- reading ------------------------------------------------------------------------------- */

static uint64_t rescan(struct watch_tree *t)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < PLACES_MAX; i++) {
		struct err ignored = { 0 };
		AUTO_FREE char *path = t->places[i].path ? strdup(t->places[i].path) : NULL;

		if (path)
			IGNORE_RESULT(tree_add(t, path, t->places[i].whole, i, &ignored),
				      "then it is partial");
		all |= path ? UINT64_C(1) << i : 0;
	}
	return all;
}

static uint64_t happened(struct watch_tree *t, const struct inotify_event *e)
{
	struct watched *w = map_get(&t->dirs, &e->wd);
	AUTO_FREE char *path = NULL;

	if (e->mask & IN_Q_OVERFLOW)
		return rescan(t);
	if (!w)
		return 0;
	if (e->mask & IN_IGNORED) {
		const uint64_t places = w->places;

		/* One that is made again may have the same number. */
		for (size_t i = 0; i < PLACES_MAX; i++)
			t->places[i].lost |= t->places[i].wd == e->wd;
		map_remove(&t->dirs, &e->wd);
		watched_free(w);
		return places;
	}
	if (e->len > 0 && strcmp(e->name, ".git") == 0)
		return w->places & ~w->whole;
	if ((e->mask & IN_ISDIR) && (e->mask & (IN_CREATE | IN_MOVED_TO)) && w->whole) {
		path = path_join(w->path, e->name);
		if (!path || watch_new(t, path, w->whole) < 0)
			t->partial |= w->whole;
	}
	return w->places;
}

void tree_read(struct watch_tree *t, void (*fn)(unsigned number, void *ctx), void *ctx)
{
	_Alignas(struct inotify_event) char data[16384];
	uint64_t places = 0;
	ssize_t n;

	while ((n = read(t->fd, data, sizeof(data))) > 0)
		for (const char *at = data; at < data + n;) {
			const struct inotify_event *e = (const void *)at;

			places |= happened(t, e);
			at += sizeof(*e) + e->len;
		}
	for (unsigned i = 0; i < PLACES_MAX; i++)
		if (places >> i & 1)
			fn(i, ctx);
}
