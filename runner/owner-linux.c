/*
 * owner-linux.c - chown(2) of a run that has only one id: recorded, because the kernel cannot do
 * it.
 *
 * In a user namespace with one id, no file can belong to another. But the file system that the run
 * has as its root keeps owners, and takes them as an extended attribute, OWNER_NAME, that the run
 * itself may not set: it needs CAP_SYS_ADMIN of the namespace. The clerk opens the file without
 * reading it, and sets the attribute. When the clerk is dead, a warning and the result say so, and
 * chown still reports success without an effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/clerk.h"

#define OWNER_NAME "security.snapcow.owner"
#define CAPABILITY "security.capability"
#define KEPT       UINT32_MAX /* chown(2): this one stays */

static struct clerk_call call_of(uint64_t dir, uint64_t path, uint64_t uid, uint64_t gid, int flags)
{
	return (struct clerk_call){
		.what = CLERK_OWNER,
		.dir = (int)dir,
		.path = path,
		.flags = flags,
		.uid = (uint32_t)uid,
		.gid = (uint32_t)gid,
	};
}

bool owner_read(const struct seccomp_data *data, struct clerk_call *ret)
{
	const uint64_t *a = (const uint64_t *)data->args;
	const uint64_t here = (uint64_t)AT_FDCWD;

	switch (data->nr) {
	case SYS_fchown:
		*ret = call_of(a[0], 0, a[1], a[2], AT_EMPTY_PATH);
		return true;
	case SYS_fchownat:
		*ret = call_of(a[0], a[1], a[2], a[3], (int)a[4]);
		return true;
#ifdef SYS_chown
	case SYS_chown:
		*ret = call_of(here, a[0], a[1], a[2], 0);
		return true;
	case SYS_lchown:
		*ret = call_of(here, a[0], a[1], a[2], AT_SYMLINK_NOFOLLOW);
		return true;
#endif
	default:
		(void)here;
		return false;
	}
}

/*
 * The number of a descriptor that a path names, or -1.  The clerk has no process in the run's /proc, so these
 * lead nowhere for it.  Only whole names: what follows them could lead up, out of the run's root.
 */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = { "/proc/self/fd/", "/proc/thread-self/fd/",
					       "/dev/fd/" };
	static const char *const streams[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };

	for (int i = 0; i < (int)ARRAY_LEN(streams); i++)
		if (strcmp(path, streams[i]) == 0)
			return i;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		const char *digits = path + strlen(folders[i]);
		const size_t n = strncmp(path, folders[i], strlen(folders[i])) == 0
				     ? strspn(digits, "0123456789")
				     : 0;

		if (n > 0 && n < 10 && digits[n] == '\0')
			return atoi(digits); // NOLINT
	}
	return -1;
}

/* What the call means, as with O_PATH. */
static int open_file(const struct clerk_call *c, const char *path)
{
	const size_t len = strlen(path);
	AUTO_CLOSE int dir = -1;
	int fd = clerk_enter_root(c->thread);

	if (fd < 0)
		return fd;
	/* An absolute path needs no directory, and none is looked at. */
	if (path[0] != '/') {
		dir = clerk_open_dir(c->thread, c->dir);
		if (dir < 0)
			return dir;
	}
	if (len == 0)
		return c->flags & AT_EMPTY_PATH ? TAKE_FD(dir) : -ENOENT;
	fd = openat(dir, path,
		    O_PATH | O_CLOEXEC | (c->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (fd != -ENOENT || c->flags & AT_SYMLINK_NOFOLLOW || named_descriptor(path) < 0)
		return fd;
	fd = clerk_open_dir(c->thread, named_descriptor(path));
	return fd == -EBADF ? -ENOENT : fd;
}

/* As chown(2) does it, root's too. */
static int drop_privileges(const char *name, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;

	if (!S_ISREG(st->st_mode))
		return 0;
	if (removexattr(name, CAPABILITY) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
		return -errno;
	if (!(mode & (S_ISUID | S_ISGID)))
		return 0;
	mode &= (mode_t)~S_ISUID;
	if (mode & S_IXGRP)
		mode &= (mode_t)~S_ISGID;
	return chmod(name, mode) < 0 ? -errno : 0;
}

static int record(int file, uint32_t uid, uint32_t gid, dev_t root)
{
	AUTO_CLOSE int self = openat(CLERK_PROC, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char value[32], name[16];
	struct stat st;
	int r;

	/* Elsewhere files have no owner that stays: /tmp, /run and the project's clone end with the run. */
	if (fstat(file, &st) < 0 || st.st_dev != root)
		return 0;
	if (self < 0 || fchdir(self) < 0)
		return -errno;
	snprintf(name, sizeof(name), "%d", file);
	r = drop_privileges(name, &st);
	if (r < 0 || (uid == KEPT && gid == KEPT))
		return r;
	snprintf(value, sizeof(value), "%lld:%lld", uid == KEPT ? -1LL : (long long)uid,
		 gid == KEPT ? -1LL : (long long)gid);
	return setxattr(name, OWNER_NAME, value, strlen(value), 0) < 0 ? -errno : 0;
}

int owner_record(const struct clerk_call *c, const char *path, dev_t root)
{
	AUTO_CLOSE int file = open_file(c, path);

	return file < 0 ? file : record(file, c->uid, c->gid, root);
}
