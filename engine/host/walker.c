/*
 * A listing brings the attributes with it (READDIRPLUS), so names need no request of their own. The
 * kernel continues to list that way only while somebody asks for attributes, so the walker asks for
 * those of a name now and then, at least once for each answer of a listing.
 *
 * It also asks for `.gitignore`, so that the kernel knows where it is missing: git looks for it in
 * each directory.
 *
 * A second walk reads small files ahead: their cost is the number of requests, and read-ahead waits
 * for none. A third walk asks for all attributes again: reading changed the access times, so the
 * next stat() would be a request. All this may be in vain, so the walker stays within bounds and
 * lets everybody else go first.
 */
#include "engine/api/walker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"

#define ENTRIES_MAX  200000
#define SMALL        ((off_t)64 << 10)     /* bytes; larger files are not read ahead */
#define AHEAD_MAX    ((uint64_t)256 << 20) /* bytes read ahead in all */
#define MEMORY_SHARE 8                     /* and at most this fraction of free memory */
#define LOOK_EVERY   32                    /* names between two looks at the load */
#define PAUSE_NS     20000000
#define ASK_EVERY    64 /* names of a directory; an answer to a listing has some 200 in 32 KiB, */
#define ASK_FIRST    7  /* and the first at least 8, if others follow (sys_each_name()) */

struct walk {
	char **dirs; /* owned, like each path; still to be read */
	size_t n, cap;
	unsigned entries; /* seen */
	bool ahead;       /* read files ahead */
	bool again;       /* ask for all attributes, which the kernel may not know any more */
	uint64_t left;    /* bytes that may still be read ahead */
	int load_fd;      /* -1: do not yield to others */
	unsigned processors;
	pid_t parent;
};

static bool push(struct walk *w, const char *dir, const char *name)
{
	char *path;

	if (!VEC_ROOM(w->dirs, w->n, w->cap))
		return false;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return false;
	w->dirs[w->n++] = path;
	return true;
}

/* Wait while more is runnable than there are processors. */
static void let_others_go_first(const struct walk *w)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	/* If the parent dies, nothing is left to read. */
	while (sys_runnable(w->load_fd) > w->processors && getppid() == w->parent)
		nanosleep(&pause, NULL);
}

/* False: the allowance is used up. */
static bool read_file(struct walk *w, int dir, const char *name, const struct stat *st)
{
	AUTO_CLOSE int fd = -1;

	if (!S_ISREG(st->st_mode) || st->st_size == 0 || st->st_size > SMALL)
		return true;
	if ((uint64_t)st->st_size > w->left)
		return false;
	w->left -= (uint64_t)st->st_size;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		sys_read_ahead(fd, st->st_size);
	return true;
}

struct reading {
	struct walk *w;
	int dir;
	const char *path;
	unsigned n; /* names so far */
};

static bool is_asked_for(const struct reading *rd, unsigned char type)
{
	return rd->w->ahead || rd->w->again || type == DT_UNKNOWN || rd->n % ASK_EVERY == ASK_FIRST;
}

/* Other than 0: going on is pointless. */
static int read_name(const char *name, unsigned char type, void *ctx)
{
	struct reading *rd = ctx;
	struct walk *w = rd->w;
	struct stat st = { .st_mode = DTTOIF(type) };

	if (w->load_fd >= 0 && w->entries % LOOK_EVERY == 0)
		let_others_go_first(w);
	if (++w->entries > ENTRIES_MAX)
		return -E2BIG;
	if (is_asked_for(rd, type) && fstatat(rd->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	rd->n++;
	if (S_ISDIR(st.st_mode))
		return push(w, rd->path, name) ? 0 : -ENOMEM;
	return !w->ahead || read_file(w, rd->dir, name, &st) ? 0 : -EDQUOT;
}

/* False: likewise. */
static bool read_dir(struct walk *w, const char *path)
{
	AUTO_CLOSE int dir =
	    openat(WALKER_FD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct reading rd = { .w = w, .dir = dir, .path = path };
	struct stat st;

	if (dir < 0 || sys_each_name(dir, read_name, &rd) != 0)
		return false;
	if (w->ahead)
		return true;
	IGNORE_RESULT(fstatat(dir, ".gitignore", &st, AT_SYMLINK_NOFOLLOW), "mostly there is none");
	/* Listing changed its access time, so ask for its attributes again, and then for its ACL. */
	return fstat(dir, &st) == 0 && faccessat(dir, ".", R_OK | X_OK, 0) == 0;
}

static bool walk(struct walk *w)
{
	bool more;

	w->entries = 0;
	more = read_dir(w, ".");
	while (more && w->n > 0) {
		AUTO_FREE char *path = w->dirs[--w->n];

		more = read_dir(w, path);
	}
	while (w->n > 0)
		free(w->dirs[--w->n]);
	return more;
}

/* It ends by itself when the mount is gone, because nothing can be opened then. */
int walker_main(const char *parent)
{
	const uint64_t memory = sys_available_memory() / MEMORY_SHARE;
	struct walk w = { .load_fd = -1 };

	if (fcntl(WALKER_FD, F_SETFD, FD_CLOEXEC) < 0) {
		log_error("this is started by cowfsd only");
		return 2;
	}
	sys_name_process(WALKER_NAME);
	IGNORE_RESULT(setpriority(PRIO_PROCESS, 0, PRIO_MAX), "then it works at that of others");
	if (parent) {
		w.ahead = true;
		w.left = memory < AHEAD_MAX ? memory : AHEAD_MAX;
		w.load_fd = sys_load_open();
		w.processors = sys_processors();
		/* Not getppid(): if the parent has died already, that is another process. */
		w.parent = (pid_t)strtol(parent, NULL, 10);
		walk(&w); /* as far as that goes */
		w.ahead = false;
		w.again = true;
	}
	_exit(walk(&w) ? 0 : 1);
}
