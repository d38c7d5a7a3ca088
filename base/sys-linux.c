#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

int sys_random(void *data, size_t len)
{
	unsigned char *p = data;
	ssize_t n;

	while (len > 0) {
		n = getrandom(p, len, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int sys_sync_data(int fd)
{
	while (fdatasync(fd) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

const char *sys_errno_text(int errnum, char *text, size_t size)
{
	return strerror_r(errnum, text, size);
}

int sys_open_node(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The kernel refuses an O_PATH descriptor itself with EBADF, and takes it by this name. */
static const char *proc_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}

ssize_t sys_list_xattrs(int fd, char *names, size_t size)
{
	ssize_t n = flistxattr(fd, names, size);
	char path[32];

	if (n < 0 && errno == EBADF)
		n = listxattr(proc_path(fd, path), names, size);
	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	return n;
}

ssize_t sys_get_xattr(int fd, const char *name, void *value, size_t size)
{
	ssize_t n = fgetxattr(fd, name, value, size);
	char path[32];

	if (n < 0 && errno == EBADF)
		n = getxattr(proc_path(fd, path), name, value, size);
	return n < 0 ? -errno : n;
}
