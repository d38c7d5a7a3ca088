/*
 * mount-api.h - the calls that mount by descriptor, which not every libc has yet.
 *
 * In glibc 2.36 <sys/mount.h> and <linux/mount.h> cannot both be included, so this includes the
 * latter and declares the one old call that we need.
 */
#pragma once

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOUNT_DETACH  2         /* MNT_DETACH */
#define MOUNT_PRIVATE (1 << 18) /* MS_PRIVATE */

static inline int mount_open_tree(int dirfd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int mount_set(int fd, unsigned int flags, const struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, fd, "", flags | AT_EMPTY_PATH, attr, sizeof(*attr));
}

/* Mount what `fd` is at what `target` is. */
static inline int mount_attach(int fd, int target)
{
	return (int)syscall(SYS_move_mount, fd, "", target, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static inline int mount_fs_open(const char *type)
{
	return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

static inline int mount_fs_set(int fd, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fd, FSCONFIG_SET_STRING, key, value, 0);
}

/* The file system as a mount that is nowhere yet. */
static inline int mount_fs_make(int fd, unsigned int attrs)
{
	if (syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attrs);
}

static inline int mount_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}
