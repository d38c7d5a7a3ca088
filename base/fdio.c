#include "base/fdio.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys.h"

/* macOS refuses a transfer of more than INT_MAX bytes, Linux cuts it short. */
#define TRANSFER_MAX ((size_t)1 << 30)

/* How much fdio_read_file() asks for when the file's own size says nothing, as in /proc. */
#define READ_STEP ((size_t)1 << 14)

#define AT_POSITION ((off_t)-1)

static size_t at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

static ssize_t read_fully(int fd, void *data, size_t len, off_t off)
{
	unsigned char *p = data;
	size_t done = 0, want;
	ssize_t n;

	assert(len <= SSIZE_MAX);
	while (done < len) {
		want = at_most(len - done, TRANSFER_MAX);
		n = off == AT_POSITION ? read(fd, p + done, want)
				       : pread(fd, p + done, want, off + (off_t)done);
		if (n == 0)
			break;
		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return (ssize_t)done;
}

ssize_t fdio_read(int fd, void *data, size_t len)
{
	return read_fully(fd, data, len, AT_POSITION);
}

ssize_t fdio_pread(int fd, void *data, size_t len, off_t off)
{
	assert(off >= 0);
	return read_fully(fd, data, len, off);
}

static int write_fully(int fd, const void *data, size_t len, off_t off)
{
	const unsigned char *p = data;
	size_t done = 0, want;
	ssize_t n;

	assert(len <= SSIZE_MAX);
	while (done < len) {
		want = at_most(len - done, TRANSFER_MAX);
		n = off == AT_POSITION ? write(fd, p + done, want)
				       : pwrite(fd, p + done, want, off + (off_t)done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			return -EIO; /* a device that takes nothing would be asked forever */
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int fdio_write(int fd, const void *data, size_t len)
{
	return write_fully(fd, data, len, AT_POSITION);
}

int fdio_pwrite(int fd, const void *data, size_t len, off_t off)
{
	assert(off >= 0);
	return write_fully(fd, data, len, off);
}

/* Append up to `len` bytes; `out` ends behind what was read.  Returns as fdio_read(). */
static ssize_t append_from(int fd, size_t len, struct buf *out)
{
	const size_t start = out->len;
	void *p = buf_extend(out, len);
	ssize_t n;

	if (!p)
		return -ENOMEM;
	n = fdio_read(fd, p, len);
	out->len = start + (n > 0 ? (size_t)n : 0);
	return n;
}

/* One byte over `max` at most is read, which is how a file that is too long shows itself. */
static int append_file(int fd, size_t hint, size_t max, struct buf *out)
{
	const size_t limit = at_most(max, SSIZE_MAX - 1) + 1;
	size_t got = 0, want;
	ssize_t n;

	do {
		want = got == 0 && hint >= READ_STEP ? hint : READ_STEP;
		want = at_most(want, limit - got);
		n = append_from(fd, want, out);
		if (n < 0)
			return (int)n;
		got += (size_t)n;
		if (got == limit)
			return -EFBIG;
	} while ((size_t)n == want);
	return 0;
}

int fdio_open_read(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name, flags | O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int fdio_read_file(int dirfd, const char *name, size_t max, struct buf *out, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	const size_t start = out->len;
	struct stat st;
	size_t hint;
	int r;

	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, "opening '%s'", name);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "reading '%s'", name);

	hint = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : 0;
	r = append_file(fd, hint, max, out);
	if (r < 0)
		out->len = start;
	if (r == -EFBIG)
		return err_set(err, r, "'%s' is larger than %zu bytes", name, max);
	if (r < 0) {
		errno = -r;
		return err_sys(err, "reading '%s'", name);
	}
	return 0;
}

/* The directory that holds `name`, open, and the last component, borrowed from `name`. */
static int open_parent(int dirfd, const char *name, const char **ret_base, struct err *err)
{
	AUTO_FREE char *parent = NULL;
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	int fd;

	if (!path_name_valid(base, strlen(base)))
		return err_set(err, -EINVAL, "'%s' does not name a file", name);
	if (!slash)
		parent = strdup(".");
	else
		parent = strndup(name, slash == name ? 1 : (size_t)(slash - name));
	if (!parent)
		return err_nomem(err);

	fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "opening the directory of '%s'", name);
	*ret_base = base;
	return fd;
}

static int write_new(int dir, const char *temp, const void *data, size_t len, mode_t mode,
		     bool durable)
{
	AUTO_CLOSE int fd = -1;
	int r;

	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = fdio_write(fd, data, len);
	if (r == 0 && durable)
		r = sys_sync_data(fd);
	if (r < 0)
		unlinkat(dir, temp, 0);
	return r;
}

static int replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		   bool durable, struct err *err)
{
	AUTO_CLOSE int dir = -1;
	const char *base = NULL;
	char temp[48];
	uint64_t unique;
	int r;

	dir = open_parent(dirfd, name, &base, err);
	if (dir < 0)
		return dir;
	r = sys_random(&unique, sizeof(unique));
	if (r < 0)
		return err_wrap(err, r, "naming a temporary file");
	snprintf(temp, sizeof(temp), FDIO_TEMP_PREFIX "%016llx", (unsigned long long)unique);

	r = write_new(dir, temp, data, len, mode, durable);
	if (r < 0) {
		errno = -r;
		return err_sys(err, "writing '%s'", name);
	}
	if (renameat(dir, temp, dir, base) < 0) {
		r = err_sys(err, "replacing '%s'", name);
		unlinkat(dir, temp, 0);
		return r;
	}
	if (durable && fsync(dir) < 0)
		return err_sys(err, "syncing the directory of '%s'", name);
	return 0;
}

int fdio_replace_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		      struct err *err)
{
	return replace(dirfd, name, data, len, mode, true, err);
}

int fdio_swap_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		   struct err *err)
{
	return replace(dirfd, name, data, len, mode, false, err);
}

int fdio_open_nameless(const char *dir, struct err *err)
{
	AUTO_FREE char *path = path_join(dir, FDIO_TEMP_PREFIX "XXXXXX");
	int fd;

	if (!path)
		return err_nomem(err);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "making a file in '%s'", dir);
	unlink(path);
	return fd;
}
