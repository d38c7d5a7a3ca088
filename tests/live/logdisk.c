/*
 * logdisk - a directory with one file, `disk`, that notes every write and sync in a log.
 *
 *   logdisk IMAGE LOG DIRECTORY
 *
 * A loop device over the file is a disk whose every moment can be built anew from the log:
 * records of a type ('W' or 'F'), an offset and a length, and the bytes of a write.  One request
 * at a time, so what stands before a sync in the log was on the disk when the sync returned.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int image, notes;

struct record {
	uint64_t type, off, len;
};

static int note(char type, off_t off, const char *data, size_t len)
{
	const struct record r = { .type = (uint64_t)type, .off = (uint64_t)off, .len = len };

	if (write(notes, &r, sizeof(r)) != (ssize_t)sizeof(r))
		return -EIO;
	return len == 0 || write(notes, data, len) == (ssize_t)len ? 0 : -EIO;
}

static int disk_getattr(const char *path, struct stat *ret, struct fuse_file_info *fi)
{
	if (strcmp(path, "/") == 0) {
		*ret = (struct stat){ .st_mode = S_IFDIR | 0700, .st_nlink = 2 };
		return 0;
	}
	if (strcmp(path, "/disk") != 0)
		return -ENOENT;
	return fstat(image, ret) < 0 ? -errno : 0;
}

static int disk_open(const char *path, struct fuse_file_info *fi)
{
	fi->direct_io = 1;
	return strcmp(path, "/disk") == 0 ? 0 : -ENOENT;
}

static int disk_read(const char *path, char *buf, size_t len, off_t off, struct fuse_file_info *fi)
{
	const ssize_t n = pread(image, buf, len, off);

	return n < 0 ? -errno : (int)n;
}

static int disk_write(const char *path, const char *buf, size_t len, off_t off,
		      struct fuse_file_info *fi)
{
	const ssize_t n = pwrite(image, buf, len, off);

	if (n < 0)
		return -errno;
	return note('W', off, buf, (size_t)n) < 0 ? -EIO : (int)n;
}

static int disk_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	return note('F', 0, NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct fuse_operations ops = {
		.getattr = disk_getattr,
		.open = disk_open,
		.read = disk_read,
		.write = disk_write,
		.fsync = disk_fsync,
	};
	static char foreground[] = "-f", one[] = "-s";
	char *words[] = { argv[0], foreground, one, argc == 4 ? argv[3] : NULL, NULL };

	if (argc != 4)
		return 2;
	image = open(argv[1], O_RDWR | O_CLOEXEC);
	notes = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (image < 0 || notes < 0) {
		perror("logdisk");
		return 1;
	}
	return fuse_main(4, words, &ops, NULL);
}
