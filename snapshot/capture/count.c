#include "snapshot/capture/count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/strlist.h"
#include "base/sys.h"
#include "snapshot/text/ignore.h"

#define DEPTH_MAX 200 /* directories, each of them open */

struct count {
	pthread_t thread;
	char *path; /* owned */
	struct stat excluded;
	bool excludes;
	uint64_t names; /* so far */
	_Atomic uint64_t total;
	atomic_bool stops;
};

/* One directory: what is in it that may be one, too. */
struct listing {
	struct count *count;
	struct strlist dirs;
};

static int on_name(const char *name, unsigned char type, void *ctx)
{
	struct listing *l = ctx;

	if (atomic_load(&l->count->stops))
		return -EINTR;
	/* What its rules leave out is not captured. */
	if (strcmp(name, IGNORE_FILE) == 0)
		return -ENOTSUP;
	l->count->names++;
	if (type != DT_DIR && type != DT_UNKNOWN)
		return 0;
	return strlist_add(&l->dirs, name);
}

static int count_dir(struct count *c, int at, const char *name, unsigned depth);

static int count_below(struct listing *l, int fd, unsigned depth)
{
	int r = sys_each_name(fd, on_name, l);

	for (size_t i = 0; i < l->dirs.n && r >= 0; i++)
		r = count_dir(l->count, fd, l->dirs.list[i], depth + 1);
	return r;
}

/* What is no directory, or cannot be opened, has been counted as a name. */
static int count_dir(struct count *c, int at, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd =
	    openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct listing l = { .count = c };
	struct stat st;
	int r;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	if (depth > DEPTH_MAX || fstat(fd, &st) < 0)
		return -ELOOP;
	if (c->excludes && st.st_dev == c->excluded.st_dev && st.st_ino == c->excluded.st_ino) {
		c->names--;
		return 0;
	}
	r = count_below(&l, fd, depth);
	strlist_done(&l.dirs);
	return r;
}

static void *run(void *arg)
{
	struct count *c = arg;

	c->names = 1;
	if (count_dir(c, AT_FDCWD, c->path, 0) >= 0)
		atomic_store(&c->total, c->names);
	return NULL;
}

struct count *count_begin(const char *path, const char *exclude)
{
	struct count *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->path = strdup(path);
	c->excludes = stat(exclude, &c->excluded) == 0;
	if (c->path && pthread_create(&c->thread, NULL, run, c) == 0)
		return c;
	free(c->path);
	free(c);
	return NULL;
}

uint64_t count_total(const struct count *c)
{
	return c ? atomic_load(&c->total) : 0;
}

void count_end(struct count *c)
{
	if (!c)
		return;
	atomic_store(&c->stops, true);
	pthread_join(c->thread, NULL);
	free(c->path);
	free(c);
}
