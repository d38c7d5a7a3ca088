/*
 * device-linux.c - mknod(2) of harmless devices in a run with a root of its own: a name, and no
 * device.
 *
 * The kernel makes no device node for anybody in a user namespace, but package managers,
 * debootstrap and images want some. So the clerk has one made in the clone's metadata: it tells the
 * file system of the root, by an extended attribute of the directory that the run may not set
 * (NODE_NAME), which device the next whiteout of that name is to be, and makes the whiteout, a
 * character device 0:0, which needs no privilege.
 *
 * It is shown as the device and cannot be opened: the root is mounted with nodev, as every mount of
 * a clone is, and the kernel opens no device on a mount of a user namespace in any case. All others
 * are refused, so that no state of a clone can hold a node that would be useful to a person who
 * unpacks it as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "runner/clerk.h"

#define NODE_NAME            "security.snapcow.node"
#define DEV(major, minor)    ((uint32_t)(major) << 8 | (minor)) /* new_encode_dev() of small numbers */
#define CAP_DAC_OVERRIDE_BIT 1                                  /* of <linux/capability.h> */

/* --- which -------------------------------------------------------------------------------- */

bool device_is_harmless(uint32_t mode, uint32_t dev)
{
	static const uint32_t harmless[] = {
		DEV(0, 0), /* a whiteout */
		DEV(1, 3), /* null */
		DEV(1, 5), /* zero */
		DEV(1, 7), /* full */
		DEV(1, 8), /* random */
		DEV(1, 9), /* urandom */
		DEV(5, 0), /* tty */
	};

	return S_ISCHR(mode) && VEC_HAS(it, harmless, ARRAY_LEN(harmless), *it == dev);
}

bool device_read(const struct seccomp_data *data, struct clerk_call *ret)
{
	const uint64_t *a = (const uint64_t *)data->args;
	bool at = data->nr == SYS_mknodat;

#ifdef SYS_mknod
	if (data->nr != SYS_mknod && !at)
		return false;
#else
	if (!at)
		return false;
#endif
	*ret = (struct clerk_call){
		.what = CLERK_DEVICE,
		.dir = at ? (int)a[0] : AT_FDCWD,
		.path = a[at],
		.mode = (uint32_t)a[1 + at] & 0xffff, /* umode_t */
		.dev = (uint32_t)a[2 + at],
	};
	return true;
}

/* --- who ---------------------------------------------------------------------------------- */

struct maker {
	unsigned uid, umask;
	unsigned long long caps;
};

static const char *find_field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : "";
}

/* As the run's own namespaces see it: the effective id is the second of four. */
static int find_maker(pid_t thread, struct maker *ret)
{
	char name[32], text[4096];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	snprintf(name, sizeof(name), "%d/status", (int)thread);
	fd = openat(CLERK_PROC, name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (sscanf(find_field(text, "\nUid:"), "%*u %u", &ret->uid) != 1 ||
	    sscanf(find_field(text, "\nUmask:"), "%o", &ret->umask) != 1 ||
	    sscanf(find_field(text, "\nCapEff:"), "%llx", &ret->caps) != 1)
		return -EPERM;
	return 0;
}

/* --- make it ------------------------------------------------------------------------------ */

/* The directory that the last name of a path is in, and that name. */
static int open_parent(const struct clerk_call *c, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	AUTO_FREE char *parent = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
	AUTO_CLOSE int dir = -1;
	int fd = clerk_enter_root(c->thread);

	if (fd < 0)
		return fd;
	if (!parent)
		return -ENOMEM;
	if (*path != '/') {
		dir = clerk_open_dir(c->thread, c->dir);
		if (dir < 0)
			return dir;
	}
	if (*name == '\0')
		return -ENOENT;
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	fd = openat(dir, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_name = name;
	return fd;
}

/* Elsewhere in the run nobody keeps such a name: /tmp and /run are the kernel's own. */
static int announce(int parent, const char *name, uint32_t dev)
{
	AUTO_CLOSE int self = openat(CLERK_PROC, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char value[NAME_MAX + 32], number[16];
	struct statfs fs;

	if (fstatfs(parent, &fs) < 0)
		return -errno;
	if (fs.f_type != CLERK_FUSE_MAGIC)
		return -EPERM;
	if (self < 0 || fchdir(self) < 0)
		return -errno;
	snprintf(number, sizeof(number), "%d", parent);
	snprintf(value, sizeof(value), "%u:%s", dev, name);
	return setxattr(number, NODE_NAME, value, strlen(value), 0) < 0 ? -errno : 0;
}

int device_make(const struct clerk_call *c, const char *path)
{
	AUTO_CLOSE int parent = -1;
	const char *name = NULL;
	struct maker maker;
	int r = find_maker(c->thread, &maker);

	/* The clerk may do more than a thread that has given up rights. */
	if (r < 0 || maker.uid != 0 || !(maker.caps >> CAP_DAC_OVERRIDE_BIT & 1) ||
	    !device_is_harmless(c->mode, c->dev))
		return -EPERM;
	parent = open_parent(c, path, &name);
	if (parent < 0)
		return parent;
	r = announce(parent, name, c->dev);
	if (r < 0)
		return r;
	umask((mode_t)maker.umask);
	r = mknodat(parent, name, S_IFCHR | (c->mode & 07777), 0) < 0 ? -errno : 0;
	if (r < 0) /* else the next whiteout of this name would be it */
		IGNORE_RESULT(announce(parent, "", 0), "the first error is the answer");
	return r;
}
