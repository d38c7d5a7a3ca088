#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"
#include "base/size.h"
#include "base/sys.h"
#include "remote/depot-dir-i.h"
#include "remote/probe-i.h"

#define SPACE_WEAK ((uint64_t)256 << 20)

/* The directory that is there, or the next one above it that is; owned. */
static char *existing(const char *path)
{
	char *at = strdup(path);
	struct stat st;

	while (at && at[1] != '\0' && lstat(at, &st) < 0) {
		char *slash = strrchr(at, '/');

		slash[slash == at] = '\0';
	}
	return at;
}

/* Make a file where blobs go and remove it: the only proof that it can be done. */
static int try_file(const char *dir, struct stat *ret, uint64_t *ret_us)
{
	AUTO_FREE char *path = path_join(dir, FDIO_TEMP_PREFIX "doctor-XXXXXX");
	const uint64_t start = clock_us();
	AUTO_CLOSE int fd = -1;
	int r = 0;

	if (!path)
		return -ENOMEM;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, "x", 1) != 1 || sys_sync_data(fd) < 0 || fstat(fd, ret) < 0)
		r = -errno;
	if (unlink(path) < 0 && r == 0)
		r = -errno;
	*ret_us = clock_us() - start;
	return r;
}

static void report_space(const struct probe *p, const char *dir)
{
	char text[SIZE_TEXT_MAX];
	struct statvfs fs;
	uint64_t room;

	if (statvfs(dir, &fs) < 0)
		return;
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	probe_tell(p, room < SPACE_WEAK ? DEPOT_WEAK : DEPOT_WELL, "space",
		   room < SPACE_WEAK ? "snapcow remote gc, or more room" : "", "%s free",
		   size_format(room, text));
}

static void report_write(const struct probe *p, const char *dir)
{
	const time_t before = time(NULL);
	struct stat st;
	uint64_t us = 0;
	int r = try_file(dir, &st, &us);

	if (r < 0) {
		char fix[240];

		snprintf(fix, sizeof(fix),
			 r == -EACCES || r == -EPERM
			     ? "have its owner allow you to write there: ls -ld '%.180s'"
			     : "see what its disk lacks: df '%.180s'",
			 dir);
		probe_tell(p, DEPOT_WEAK, "push", fix, "no file can be made in '%s': %s", dir,
			   strerror(-r));
		return;
	}
	probe_tell(p, DEPOT_WELL, "push", "", "files can be made in '%s'", dir);
	/* A second more: file systems may round what they record. */
	probe_clock(p, SYS_ST_MTIM(&st).tv_sec, before - 1, time(NULL) + 1);
	probe_tell(p, DEPOT_WELL, "latency", "", "%" PRIu64 ".%" PRIu64 " ms to store a byte",
		   us / 1000, us % 1000 / 100);
}

int dir_probe(struct depot *d, depot_tell_fn tell, void *ctx)
{
	const struct probe p = { tell, ctx };
	struct dir_depot *dir = dir_of(d);
	AUTO_FREE char *blobs = path_join(dir->path, "blobs/sha256");
	AUTO_FREE char *there = blobs ? existing(blobs) : NULL;
	struct err why = { 0 };
	struct stat st;
	int r;

	if (!there)
		return -ENOMEM;
	r = dir_use(dir, &why);
	if (r == -ENOENT)
		r = dir_check_strange(dir, &why);
	if (r < 0) {
		probe_tell(&p, DEPOT_ILL, "reach",
			   r == -EEXIST
			       ? "choose an empty directory: snapcow remote add NAME dir:/path"
			       : "mount it, or ask its owner for permission to read it",
			   "%s", why.msg);
		return r;
	}
	if (stat(dir->path, &st) == 0)
		probe_tell(&p, DEPOT_WELL, "reach", "", "'%s' is a directory here", dir->path);
	else
		probe_tell(&p, DEPOT_WELL, "reach", "",
			   "'%s' is not there yet: the first push makes it", dir->path);
	report_space(&p, there);
	report_write(&p, there);
	return 0;
}
