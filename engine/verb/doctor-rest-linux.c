/*
 * Does a layer below us encrypt a directory on its disk? It may be a file system by itself
 * (fscrypt, or one made for it), or a device of dm-crypt below it, perhaps below LVM, RAID or a
 * loop device.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/btrfs.h>
#include <linux/fscrypt.h>

#include "base/fdio.h"
#include "engine/verb/doctor-i.h"

#define DEPTH_MAX 8 /* devices on devices */

static enum doctor_rest of_path(const char *path, int depth);

static enum doctor_rest of_file_system(const char *type)
{
	static const char *const made_for_it[] = { "ecryptfs", "fuse.gocryptfs", "fuse.cryfs",
						   "fuse.encfs", "fuse.securefs" };

	for (size_t i = 0; i < ARRAY_LEN(made_for_it); i++)
		if (strcmp(type, made_for_it[i]) == 0)
			return DOCTOR_REST_ENCRYPTED;
	return strcmp(type, "tmpfs") == 0 || strcmp(type, "ramfs") == 0 ? DOCTOR_REST_NONE
									: DOCTOR_REST_UNKNOWN;
}

/* The first line of a file that the kernel writes. */
static bool read_line(int dir, const char *name, char *line, size_t size)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : fdio_read(fd, line, size - 1);

	if (n < 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static enum doctor_rest of_device(unsigned major, unsigned minor, int depth);

/* All that it is made of has to be encrypted. */
static enum doctor_rest of_slaves(int device, int depth)
{
	const int fd = openat(device, "slaves", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	enum doctor_rest found = DOCTOR_REST_PLAIN;
	const struct dirent *one;
	unsigned major, minor;
	size_t n = 0;

	while (dir && (one = readdir(dir))) {
		char name[300], line[32];

		snprintf(name, sizeof(name), "slaves/%s/dev", one->d_name);
		if (one->d_name[0] == '.' || !read_line(device, name, line, sizeof(line)) ||
		    sscanf(line, "%u:%u", &major, &minor) != 2)
			continue;
		found = of_device(major, minor, depth + 1);
		n++;
		if (found != DOCTOR_REST_ENCRYPTED)
			break;
	}
	if (dir)
		closedir(dir);
	return n > 0 ? found : DOCTOR_REST_PLAIN;
}

/* libcryptsetup names what it makes; two of its kinds only check. */
static bool is_crypt(const char *uuid)
{
	return strncmp(uuid, "CRYPT-", 6) == 0 && strncmp(uuid, "CRYPT-VERITY-", 13) != 0 &&
	       strncmp(uuid, "CRYPT-INTEGRITY-", 16) != 0;
}

static enum doctor_rest of_device(unsigned major, unsigned minor, int depth)
{
	char path[64], line[4096];
	AUTO_CLOSE int device = -1;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major, minor);
	device = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (device < 0 || depth > DEPTH_MAX)
		return DOCTOR_REST_UNKNOWN;
	if (read_line(device, "dm/uuid", line, sizeof(line)) && is_crypt(line))
		return DOCTOR_REST_ENCRYPTED;
	if (read_line(device, "loop/backing_file", line, sizeof(line)))
		return of_path(line, depth + 1);
	if (faccessat(device, "partition", F_OK, 0) == 0 &&
	    read_line(device, "../dev", line, sizeof(line)) &&
	    sscanf(line, "%u:%u", &major, &minor) == 2)
		return of_device(major, minor, depth + 1);
	return of_slaves(device, depth);
}

/* Only one of several devices stands in the list of mounts. */
static bool has_one_device(const char *path, const char *type)
{
	struct btrfs_ioctl_fs_info_args info = { 0 };
	AUTO_CLOSE int fd = -1;

	if (strcmp(type, "btrfs") != 0)
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && ioctl(fd, BTRFS_IOC_FS_INFO, &info) == 0 && info.num_devices == 1;
}

/* A file system with a device number of its own (btrfs, overlayfs): by what the list of mounts says of it. */
static enum doctor_rest of_mount(const char *path, int depth)
{
	FILE *list = fopen("/proc/self/mountinfo", "re");
	char line[8192], type[64], source[4096];
	enum doctor_rest found = DOCTOR_REST_UNKNOWN;
	unsigned long long id;
	struct statx stx;
	const char *rest;
	struct stat st;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &stx) < 0 || !(stx.stx_mask & STATX_MNT_ID))
		stx.stx_mnt_id = 0;
	while (list && fgets(line, sizeof(line), list)) {
		rest = strstr(line, " - ");
		if (sscanf(line, "%llu", &id) != 1 || !rest || id != stx.stx_mnt_id ||
		    sscanf(rest, " - %63s %4095s", type, source) != 2)
			continue;
		found = of_file_system(type);
		if (found == DOCTOR_REST_UNKNOWN && stat(source, &st) == 0 && S_ISBLK(st.st_mode) &&
		    has_one_device(path, type))
			found = of_device(major(st.st_rdev), minor(st.st_rdev), depth);
		break;
	}
	if (list)
		fclose(list);
	return found;
}

static bool has_policy(const char *path)
{
	struct fscrypt_get_policy_ex_arg policy = { .policy_size = sizeof(policy.policy) };
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && ioctl(fd, FS_IOC_GET_ENCRYPTION_POLICY_EX, &policy) == 0;
}

static enum doctor_rest of_path(const char *path, int depth)
{
	struct stat st;

	if (depth > DEPTH_MAX || stat(path, &st) < 0)
		return DOCTOR_REST_UNKNOWN;
	if (has_policy(path))
		return DOCTOR_REST_ENCRYPTED;
	return major(st.st_dev) == 0 ? of_mount(path, depth)
				     : of_device(major(st.st_dev), minor(st.st_dev), depth);
}

enum doctor_rest doctor_rest(const char *dir)
{
	return of_path(dir, 0);
}
