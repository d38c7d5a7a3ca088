/*
 * A directory is reached from the top, one name at a time, by descriptors that follow no
 * symlink.  Whoever swaps a directory for a symlink, or for another directory, while we are at
 * work gets an error from us, never a write somewhere else.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "snapshot/apply-i.h"

void dir_forget(struct acting *a)
{
	cleanup_close(&a->fd);
	a->fd = -1;
	a->dir = PLAN_NONE;
}

static int step_down(int fd, const char *name)
{
	int next = sys_open_here(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return next == -ENOENT || next == -ENOTDIR || next == -ELOOP ? -ESTALE : next;
}

static int other_mount(const char *path, size_t len, struct err *err)
{
	return err_set(err, -EXDEV,
		       "'%.*s' is on another file system than the project, or mounted in it, which "
		       "this cannot change",
		       (int)len, path);
}

int dir_open_path(struct acting *a, const char *path, size_t len, struct err *err)
{
	AUTO_CLOSE int fd = fcntl(a->top_fd, F_DUPFD_CLOEXEC, 0);
	char name[TREE_NAME_LEN_MAX + 1];
	struct stat st;
	size_t n;
	int next;

	if (fd < 0)
		return err_sys(err, "'%s'", a->journal.project);
	for (const char *p = path, *end = path + len; p < end; p += n + 1) {
		const char *slash = memchr(p, '/', (size_t)(end - p));

		n = (size_t)((slash ? slash : end) - p);
		if (n >= sizeof(name))
			return err_set(err, -ENAMETOOLONG, "'%s'", path);
		memcpy(name, p, n);
		name[n] = '\0';
		next = step_down(fd, name);
		if (next == -EXDEV)
			return other_mount(path, len, err);
		if (next < 0)
			return next == -ESTALE
				   ? next
				   : err_wrap(err, next, "opening '%.*s'", (int)len, path);
		close(fd);
		fd = next;
		if (fstat(fd, &st) < 0)
			return err_sys(err, "'%.*s'", (int)len, path);
		if (st.st_dev != a->dev)
			return other_mount(path, len, err);
	}
	return TAKE_FD(fd);
}

int dir_at(struct acting *a, size_t dir, struct err *err)
{
	struct plan_step *s = &a->plan->dirs[dir];
	const uint64_t known = s->act == PLAN_CREATE ? s->new_ino : s->old_ino;
	struct stat st;
	int fd;

	if (a->dir == dir)
		return a->fd;
	dir_forget(a);
	fd = dir_open_path(a, s->path, strlen(s->path), err);
	if (fd < 0)
		return fd;
	a->fd = fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "'%s'", s->path);
	if (known != 0 && known != st.st_ino && !a->back)
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
	/* Its own mode comes back with its other attributes, or when all is taken back. */
	if ((st.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, (st.st_mode & 07777) | S_IRWXU) < 0)
		return err_sys(err, "making '%s' writable", a->plan->dirs[dir].path);
	return fd;
}
