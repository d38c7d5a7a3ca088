#include "snapshot/capture/scout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/strlist.h"
#include "base/sys.h"
#include "snapshot/text/ignore.h"

#define DEPTH_MAX  200 /* directories, each of them open */
#define STAT_BLOCK 512 /* what st_blocks counts, whatever the block size */

struct scout {
	struct scout_options options;
	pthread_t thread;
	int top; /* owned */
	dev_t home;
	uint64_t bytes; /* so far; the thread's own */
	atomic_bool stops;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	bool ended, more;
};

uint64_t scout_bytes(const struct stat *st)
{
	const uint64_t size = (uint64_t)st->st_size, data = (uint64_t)st->st_blocks * STAT_BLOCK;
	const uint64_t names = st->st_nlink > 0 ? (uint64_t)st->st_nlink : 1;

	return (size < data ? size : data) / names;
}

/* One directory: its files, and what may be one in it. */
struct listing {
	struct scout *scout;
	int fd;
	uint64_t bytes;
	struct strlist dirs;
};

static int on_name(const char *name, unsigned char type, void *ctx)
{
	struct listing *l = ctx;
	const struct scout *s = l->scout;
	struct stat st;

	if (atomic_load(&s->stops))
		return -EINTR;
	if (strcmp(name, IGNORE_FILE) == 0)
		return 1;
	if (type == DT_DIR)
		return strlist_add(&l->dirs, name);
	if (type != DT_REG && type != DT_UNKNOWN)
		return 0;
	if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != s->home)
		return 0;
	if (S_ISDIR(st.st_mode))
		return strlist_add(&l->dirs, name);
	if (S_ISREG(st.st_mode))
		l->bytes += scout_bytes(&st);
	return 0;
}

static int look_in(struct scout *s, int at, const char *name, unsigned depth);

/* 1: there are more bytes than were asked for. */
static int look_below(struct listing *l, unsigned depth)
{
	struct scout *s = l->scout;
	int r = sys_each_name(l->fd, on_name, l);

	/* It has gone meanwhile; or it has rules, and what they leave out is not known here. */
	if (r != 0)
		return r == -EINTR || r == -ENOMEM ? r : 0;
	s->bytes += l->bytes;
	r = s->bytes > s->options.enough;
	for (size_t i = 0; i < l->dirs.n && r == 0; i++)
		r = look_in(s, l->fd, l->dirs.list[i], depth + 1);
	return r;
}

static int look_in(struct scout *s, int at, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd =
	    openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct listing l = { .scout = s, .fd = fd };
	struct stat st;
	int r;

	if (fd < 0 || depth > DEPTH_MAX || fstat(fd, &st) < 0 || st.st_dev != s->home ||
	    s->options.excludes(s->options.ctx, &st))
		return 0;
	r = look_below(&l, depth);
	strlist_done(&l.dirs);
	return r;
}

static void *run(void *arg)
{
	struct scout *s = arg;
	const int r = look_in(s, s->top, ".", 0);

	pthread_mutex_lock(&s->lock);
	s->ended = true;
	s->more = r > 0;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void scout_free(struct scout *s)
{
	cleanup_close(&s->top);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

struct scout *scout_begin(int top, const struct scout_options *options)
{
	struct scout *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	s->options = *options;
	pthread_mutex_init(&s->lock, NULL);
	sys_cond_init(&s->changed);
	s->top = fcntl(top, F_DUPFD_CLOEXEC, 0);
	if (s->top >= 0 && fstat(s->top, &st) == 0) {
		s->home = st.st_dev;
		if (pthread_create(&s->thread, NULL, run, s) == 0)
			return s;
	}
	scout_free(s);
	return NULL;
}

int scout_ask(struct scout *s, unsigned wait_ms)
{
	LOCKED(&s->lock);

	if (!s->ended && wait_ms > 0)
		sys_cond_wait_ms(&s->changed, &s->lock, wait_ms);
	return s->ended ? s->more : -EAGAIN;
}

void scout_stop(struct scout *s)
{
	if (s)
		atomic_store(&s->stops, true);
}

void scout_end(struct scout *s)
{
	if (!s)
		return;
	scout_stop(s);
	pthread_join(s->thread, NULL);
	scout_free(s);
}
