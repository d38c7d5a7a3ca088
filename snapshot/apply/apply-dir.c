/*
 * Every directory is opened from the top by a call that follows no symlink and enters no mount.  If
 * somebody swaps a directory for a symlink or another directory meanwhile, we fail; we never write
 * elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply/apply-i.h"

void dir_forget(struct acting *a)
{
	cleanup_close(&a->fd);
	a->dir = PLAN_NONE;
}

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int other_mount(const char *path, size_t len, struct err *err)
{
	return err_set(err, -EXDEV,
		       "'%.*s' is on another file system than the project, or mounted in it, which "
		       "this cannot change",
		       (int)len, path);
}

static bool is_other(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* Name by name, for systems that cannot check a whole path in one call. */
static int walk_down(struct acting *a, const char *path, size_t len)
{
	AUTO_CLOSE int fd = fcntl(a->top_fd, F_DUPFD_CLOEXEC, 0);
	char name[TREE_NAME_LEN_MAX + 1];
	size_t n;
	int next;

	if (fd < 0)
		return -errno;
	for (const char *p = path, *end = path + len; p < end; p += n + 1) {
		const char *slash = memchr(p, '/', (size_t)(end - p));

		n = (size_t)((slash ? slash : end) - p);
		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, p, n);
		name[n] = '\0';
		next = sys_open_here(fd, name, DIR_FLAGS);
		if (next < 0)
			return next;
		close(fd);
		fd = next;
	}
	return TAKE_FD(fd);
}

static int open_below(struct acting *a, const char *path, size_t len)
{
	char whole[PATH_MAX];
	int fd;

	if (len == 0 || len >= sizeof(whole))
		return walk_down(a, path, len);
	memcpy(whole, path, len);
	whole[len] = '\0';
	fd = sys_open_below(a->top_fd, whole, DIR_FLAGS);
	return fd == -ENOTSUP ? walk_down(a, path, len) : fd;
}

int dir_open_path(struct acting *a, const char *path, size_t len, struct stat *ret, struct err *err)
{
	AUTO_CLOSE int fd = open_below(a, path, len);

	if (fd == -EXDEV)
		return other_mount(path, len, err);
	if (fd < 0)
		return is_other(fd) ? -ESTALE : err_wrap(err, fd, "opening '%.*s'", (int)len, path);
	if (fstat(fd, ret) < 0)
		return err_sys(err, "'%.*s'", (int)len, path);
	/* A file system may hold others that are not mounted anywhere. */
	return ret->st_dev == a->dev ? TAKE_FD(fd) : other_mount(path, len, err);
}

int dir_at(struct acting *a, size_t dir, struct err *err)
{
	struct plan_step *s = &a->plan->dirs[dir];
	const uint64_t known = s->act == PLAN_CREATE ? s->new_ino : s->old_ino;
	int fd;

	if (a->dir == dir)
		return a->fd;
	dir_forget(a);
	fd = dir_open_path(a, s->path, strlen(s->path), &a->dir_st, err);
	if (fd < 0)
		return fd;
	a->fd = fd;
	if (known != 0 && known != a->dir_st.st_ino && !a->back)
		return -ESTALE;
	a->dir = dir;
	return fd;
}

int dir_to_change(struct acting *a, size_t dir, struct err *err)
{
	int fd = dir_at(a, dir, err);
	struct stat st;

	if (fd < 0 || geteuid() == 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "'%s'", a->plan->dirs[dir].path);
	/* Its own mode is restored with its other attributes, or when everything is taken back. */
	if ((st.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, (st.st_mode & 07777) | S_IRWXU) < 0)
		return err_sys(err, "making '%s' writable", a->plan->dirs[dir].path);
	return fd;
}

static int is_name(const char *name, unsigned char type, void *ctx)
{
	return strcmp(name, *(const char **)ctx) == 0;
}

/* Nobody has made it, and yet it is there: another name is meant. */
const char *dir_why_taken(int fd, const char *name)
{
	AUTO_CLOSE int names = openat(fd, ".", DIR_FLAGS);
	struct stat st;

	return names >= 0 && sys_each_name(names, is_name, &name) == 0 &&
		       fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0
		   ? "is another spelling of a name that is there, and this file system takes both "
		     "for one"
		   : "was made meanwhile";
}
