#include "engine/worker/tray.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/sys.h"
#include "base/text.h"

#define KEPT_S    (8 * 86400)
#define LINE_SIZE 40 /* "PID ATTEMPT\n", each in so many digits that it is always as long */
#define LINE      "%010d %020" PRIu64 "\n"

void tray_done(struct tray *t)
{
	cleanup_close(&t->fd);
	free(t->dir);
	*t = (struct tray)TRAY_INIT;
}

static int open_dir(const char *dir, const char *end, struct tray *ret, struct err *err)
{
	CLEANUP(tray_done) struct tray t = TRAY_INIT;
	int r = text_set(&t.dir, err, "%s%s", dir, end);

	if (r == 0)
		r = path_make_dirs(t.dir, 0700, err);
	if (r < 0)
		return r;
	t.fd = open(t.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t.fd < 0)
		return err_sys(err, "'%s'", t.dir);
	*ret = t;
	t = (struct tray)TRAY_INIT;
	return 0;
}

int tray_open(const char *store, struct tray *ret, struct err *err)
{
	return open_dir(store, "-tickets", ret, err);
}

/* Anyone who can write there can write a result, and we take results over as files of our own. */
int tray_open_shared(const char *dir, struct tray *ret, struct err *err)
{
	CLEANUP(tray_done) struct tray t = TRAY_INIT;
	struct stat st;
	int r = open_dir(dir, "", &t, err);

	if (r < 0)
		return r;
	if (fstat(t.fd, &st) < 0)
		return err_sys(err, "'%s'", t.dir);
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return err_set(err, -EACCES,
			       "'%s' is not a directory that only you can write to (chmod go-w)",
			       t.dir);
	*ret = t;
	t = (struct tray)TRAY_INIT;
	return 0;
}

const char *tray_name(const char *id, enum tray_file file, char name[TRAY_NAME_SIZE])
{
	static const char *const ends[] = { ".lock",   ".out",  ".err", ".result",
					    ".ticket", ".host", ".log" };

	snprintf(name, TRAY_NAME_SIZE, "%.64s%s", id, ends[file]);
	return name;
}

/* --- results ------------------------------------------------------------------------------ */

int tray_get(const struct tray *t, const char *id, enum tray_file file, size_t max, struct buf *ret,
	     struct err *err)
{
	char name[TRAY_NAME_SIZE];
	int r = fdio_read_file(t->fd, tray_name(id, file, name), max, ret, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int tray_put(const struct tray *t, const char *id, enum tray_file file, const void *data,
	     size_t len, struct err *err)
{
	char name[TRAY_NAME_SIZE];

	return fdio_replace_file(t->fd, tray_name(id, file, name), data, len, 0600, err);
}

int tray_result(const struct tray *t, const char *id, struct buf *ret, struct err *err)
{
	return tray_get(t, id, TRAY_RESULT, QUEUE_RESULT_MAX, ret, err);
}

static bool has_result(const struct tray *t, const char *id)
{
	char name[TRAY_NAME_SIZE];

	return faccessat(t->fd, tray_name(id, TRAY_RESULT, name), F_OK, 0) == 0;
}

static int empty_output(const struct tray *t, const char *id, int flags, struct err *err)
{
	for (enum tray_file f = TRAY_OUT; f <= TRAY_ERR; f++) {
		char name[TRAY_NAME_SIZE];
		AUTO_CLOSE int fd =
		    openat(t->fd, tray_name(id, f, name),
			   O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | flags, 0600);

		if (fd < 0)
			return err_sys(err, "'%s/%s'", t->dir, name);
	}
	return 0;
}

static int store_result(const struct tray *t, const char *id, const struct buf *text,
			struct err *err)
{
	char name[TRAY_NAME_SIZE], fresh[TRAY_NAME_SIZE + 16];
	int r;

	tray_name(id, TRAY_RESULT, name);
	snprintf(fresh, sizeof(fresh), "%s-%d", name, (int)getpid());
	r = fdio_replace_file(t->fd, fresh, text->data, text->len, 0600, err);
	if (r < 0)
		return r;
	r = linkat(t->fd, fresh, t->fd, name, 0) == 0 ? 1
	    : errno == EEXIST                         ? 0
						      : err_sys(err, "'%s/%s'", t->dir, name);
	unlinkat(t->fd, fresh, 0);
	return r;
}

int tray_put_result(const struct tray *t, const char *id, const struct buf *text, struct err *err)
{
	struct err full = { 0 };
	int r;

	/* Nothing of one that is over goes to make room. */
	if (has_result(t, id))
		return 0;
	r = store_result(t, id, text, &full);
	if ((r == -ENOSPC || r == -EDQUOT) && empty_output(t, id, 0, &(struct err){ 0 }) == 0)
		return store_result(t, id, text, err);
	return r < 0 ? err_set(err, r, "%s", full.msg) : r;
}

/* --- who does it -------------------------------------------------------------------------- */

static int open_lock(const struct tray *t, const char *id, int flags)
{
	char name[TRAY_NAME_SIZE];

	return openat(t->fd, tray_name(id, TRAY_LOCK, name), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int read_holder(int fd, struct tray_holder *ret)
{
	char line[LINE_SIZE + 1] = "";
	uint64_t attempt;
	int pid;

	*ret = (struct tray_holder){ 0 };
	if (fdio_pread(fd, line, LINE_SIZE, 0) < 0)
		return -errno;
	if (sscanf(line, "%d %" SCNu64, &pid, &attempt) == 2)
		*ret = (struct tray_holder){ .pid = pid, .attempt = attempt };
	return 0;
}

static int write_holder(int fd, pid_t pid, uint64_t attempt, struct err *err)
{
	char line[LINE_SIZE];
	const int n = snprintf(line, sizeof(line), LINE, (int)pid, attempt);
	int r = fdio_pwrite(fd, line, (size_t)n, 0);

	return r < 0 ? err_set(err, r, "recording which process has a ticket") : 0;
}

int tray_holder(const struct tray *t, const char *id, struct tray_holder *ret, struct err *err)
{
	AUTO_CLOSE int fd = open_lock(t, id, O_RDONLY);

	*ret = (struct tray_holder){ 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "a ticket in '%s'", t->dir);
	return read_holder(fd, ret);
}

/* What is closed after writing wakes those who wait (base/await.h): who only looks opens it for reading. */
int tray_claim(const struct tray *t, const char *id, int ret_fds[2], struct tray_holder *ret,
	       struct err *err)
{
	AUTO_CLOSE int lock = open_lock(t, id, O_RDONLY | O_CREAT);
	AUTO_CLOSE int line = -1;
	struct tray_holder next;
	struct stat st;
	int r;

	if (lock < 0)
		return err_sys(err, "a ticket in '%s'", t->dir);
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : err_sys(err, "a ticket in '%s'", t->dir);
	/* It may have ended, or was swept away, since somebody looked. */
	if (has_result(t, id) || fstat(lock, &st) < 0 || st.st_nlink == 0)
		return 0;
	line = open_lock(t, id, O_WRONLY);
	if (line < 0)
		return err_sys(err, "a ticket in '%s'", t->dir);
	r = read_holder(lock, &next);
	if (r == 0)
		r = empty_output(t, id, O_CREAT, err);
	if (r == 0 && next.pid != TRAY_OVER) {
		next = (struct tray_holder){ .attempt = next.attempt + 1 };
		r = write_holder(line, next.pid, next.attempt, err);
	}
	if (r < 0)
		return r;
	*ret = next;
	ret_fds[0] = TAKE_FD(lock);
	ret_fds[1] = TAKE_FD(line);
	return 1;
}

int tray_sign(const int fds[2], uint64_t attempt, struct err *err)
{
	return write_holder(fds[1], getpid(), attempt, err);
}

int tray_sign_over(const int fds[2], uint64_t attempt, struct err *err)
{
	return write_holder(fds[1], TRAY_OVER, attempt, err);
}

int tray_signal(const struct tray *t, const char *id, int sig)
{
	AUTO_CLOSE int fd = open_lock(t, id, O_RDONLY);
	struct tray_holder who;
	int r = fd < 0 ? -ESRCH : read_holder(fd, &who);

	if (r < 0)
		return r;
	return who.pid <= 0 ? -ESRCH : sys_signal_holder(who.pid, fd, sig);
}

bool tray_is_held(const struct tray *t, const char *id)
{
	AUTO_CLOSE int fd = open_lock(t, id, O_RDONLY);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* --- what is old -------------------------------------------------------------------------- */

/* A result is kept for all of the time, however long the run was. */
static bool is_old(const struct tray *t, const char *id)
{
	static const enum tray_file files[] = { TRAY_RESULT, TRAY_LOCK, TRAY_TICKET };
	char name[TRAY_NAME_SIZE];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (fstatat(t->fd, tray_name(id, files[i], name), &st, AT_SYMLINK_NOFOLLOW) == 0)
			return st.st_mtime < time(NULL) - KEPT_S;
		if (errno != ENOENT)
			return false;
	}
	return false;
}

/* One that was cancelled before it began has a result and no lock; one that never began, its text alone. */
static bool names_ticket(const char *name, char id[QUEUE_ID_SIZE])
{
	static const char *const ends[] = { ".lock", ".result", ".ticket" };

	if (strlen(name) < QUEUE_ID_SIZE)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		if (strcmp(name + QUEUE_ID_SIZE - 1, ends[i]) != 0)
			continue;
		snprintf(id, QUEUE_ID_SIZE, "%.64s", name);
		return true;
	}
	return false;
}

/* The lock file goes last: one that comes back then finds nothing, or all of it. */
static void remove_ticket(const struct tray *t, const char *id)
{
	static const enum tray_file files[] = { TRAY_OUT, TRAY_ERR,    TRAY_TICKET, TRAY_HOST,
						TRAY_LOG, TRAY_RESULT, TRAY_LOCK };
	char name[TRAY_NAME_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		unlinkat(t->fd, tray_name(id, files[i], name), 0);
}

void tray_sweep(const struct tray *t)
{
	DIR *dir = opendir(t->dir);
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char id[QUEUE_ID_SIZE];

		if (names_ticket(d->d_name, id) && is_old(t, id) && !tray_is_held(t, id))
			remove_ticket(t, id);
	}
	if (dir)
		closedir(dir);
}
