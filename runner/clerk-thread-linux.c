/*
 * clerk-thread-linux.c - what the clerk sees of the calling thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "runner/clerk.h"

static int open_of(pid_t thread, const char *what)
{
	char name[64];
	const int n = snprintf(name, sizeof(name), "%d/%s", (int)thread, what);
	const int fd = n > 0 ? openat(CLERK_PROC, name, O_PATH | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

int clerk_enter_root(pid_t thread)
{
	AUTO_CLOSE int root = open_of(thread, "root");

	if (root < 0)
		return root;
	return fchdir(root) < 0 || chroot(".") < 0 ? -errno : 0;
}

int clerk_open_dir(pid_t thread, int dir)
{
	char name[32];
	int fd;

	if (dir == AT_FDCWD)
		return open_of(thread, "cwd");
	snprintf(name, sizeof(name), "fd/%d", dir);
	fd = dir < 0 ? -EBADF : open_of(thread, name);
	return fd == -ENOENT ? -EBADF : fd;
}
