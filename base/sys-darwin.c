#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

/* getentropy() refuses more than this in one call. */
#define ENTROPY_MAX 256

int sys_random(void *data, size_t len)
{
	unsigned char *p = data;
	size_t n;

	while (len > 0) {
		n = len < ENTROPY_MAX ? len : ENTROPY_MAX;
		if (getentropy(p, n) < 0)
			return -errno;
		p += n;
		len -= n;
	}
	return 0;
}

/*
 * fsync() here leaves the bytes in the drive's cache; only F_FULLFSYNC empties it.
 * Network and some foreign file systems do not know it, and there fsync() is all
 * there is.
 */
int sys_sync_data(int fd)
{
	while (fcntl(fd, F_FULLFSYNC) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != ENOTSUP && errno != ENOTTY && errno != EINVAL)
			return -errno;
		while (fsync(fd) < 0)
			if (errno != EINTR)
				return -errno;
		return 0;
	}
	return 0;
}

const char *sys_errno_text(int errnum, char *text, size_t size)
{
	int rc = strerror_r(errnum, text, size);

	if (rc != 0 && rc != ERANGE)
		snprintf(text, size, "error %d", errnum);
	return text;
}

/* A socket cannot be opened at all: EOPNOTSUPP, which differs from ENOTSUP here. */
int sys_open_node(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_EVTONLY | O_SYMLINK | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == EOPNOTSUPP ? -ENOTSUP : -errno;
	return fd;
}

ssize_t sys_list_xattrs(int fd, char *names, size_t size)
{
	ssize_t n = flistxattr(fd, names, size, 0);

	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	return n;
}

ssize_t sys_get_xattr(int fd, const char *name, void *value, size_t size)
{
	ssize_t n = fgetxattr(fd, name, value, size, 0, 0);

	if (n < 0)
		return errno == ENOATTR ? -ENODATA : -errno;
	return n;
}
