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
#include <unistd.h>

#include "base/map.h"
#include "base/path.h"
#include "base/strlist.h"
#include "engine/watch/watch-i.h"

#define PLACES_MAX  64
#define WATCHES_MAX 100000
#define NAMES_MASK                                                                          \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB | \
	 IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
/* A log that is appended to is never closed. */
#define FILES_MASK (NAMES_MASK | IN_MODIFY)

struct watched {
	int wd;
	char *path;             /* owned */
	uint64_t places, whole; /* bit n: place n; of those, with all below */
};

struct place {
	char *path; /* owned */
	bool whole;
};

struct watch_tree {
	int fd;
	struct map dirs; /* wd -> struct watched, owned */
	struct place places[PLACES_MAX];
	uint64_t partial; /* places of which some directory is not watched */
};

static uint64_t hash_wd(const void *key)
{
	return (uint64_t) * (const int *)key * UINT64_C(0x9e3779b97f4a7c15);
}

static bool equal_wd(const void *a, const void *b)
{
	return *(const int *)a == *(const int *)b;
}

int tree_open(struct watch_tree **ret, struct err *err)
{
	struct watch_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return err_nomem(err);
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
	return number >= PLACES_MAX || (t->partial >> number & 1);
}

/* --- adding -------------------------------------------------------------------------------- */

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
	return w->path ? 0 : -ENOMEM;
}

static int watch_dir(struct watch_tree *t, const char *path, uint64_t places, uint64_t whole)
{
	const uint32_t mask = whole == places ? NAMES_MASK : FILES_MASK;
	int wd;

	if (t->dirs.n >= WATCHES_MAX)
		return -ENOSPC;
	wd = inotify_add_watch(t->fd, path, mask | IN_MASK_ADD);
	return wd < 0 ? -errno : enter(t, wd, path, places, whole);
}

static int add_names(const char *path, struct strlist *more)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int r = 0;

	if (!dir)
		return 0;
	while (r >= 0 && (d = readdir(dir)))
		/* Git's own folder changes with every command of git's, and is never what a rule is about. */
		if (d->d_type == DT_DIR && strcmp(d->d_name, ".") != 0 &&
		    strcmp(d->d_name, "..") != 0 && strcmp(d->d_name, ".git") != 0)
			r = strlist_take(more, path_join(path, d->d_name));
	closedir(dir);
	return r;
}

/* First the watch, then the names: what is made meanwhile is seen by one or the other. */
static int watch_all(struct watch_tree *t, const char *path, uint64_t places)
{
	CLEANUP(strlist_done) struct strlist left = { 0 };
	int r = strlist_add(&left, path);

	while (r >= 0 && left.n > 0) {
		AUTO_FREE char *one = left.list[--left.n];

		left.list[left.n] = NULL;
		r = watch_dir(t, one, places, places);
		if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
			r = 0;
		else if (r >= 0)
			r = add_names(one, &left);
	}
	if (r < 0)
		t->partial |= places;
	return r;
}

int tree_add(struct watch_tree *t, const char *path, bool whole, unsigned number, struct err *err)
{
	uint64_t bit;
	int r;

	if (number >= PLACES_MAX)
		return 0;
	bit = UINT64_C(1) << number;
	free(t->places[number].path);
	t->places[number] = (struct place){ .path = strdup(path), .whole = whole };
	if (!t->places[number].path)
		return err_nomem(err);
	r = whole ? watch_all(t, path, bit) : watch_dir(t, path, bit, 0);
	if (r < 0)
		t->partial |= bit;
	return r == -ENOMEM ? err_nomem(err) : 0;
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

		map_remove(&t->dirs, &e->wd);
		watched_free(w);
		return places;
	}
	if (e->len > 0 && strcmp(e->name, ".git") == 0)
		return w->places & ~w->whole;
	if ((e->mask & IN_ISDIR) && (e->mask & (IN_CREATE | IN_MOVED_TO)) && w->whole) {
		path = path_join(w->path, e->name);
		if (!path || watch_all(t, path, w->whole) < 0)
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
