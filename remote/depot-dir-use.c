#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/sys.h"
#include "remote/depot-dir-i.h"

int dir_use(struct dir_depot *dir, struct err *err)
{
	AUTO_CLOSE int fd = -1;

	if (dir->fd >= 0)
		return 0;
	fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_sys(err, "opening '%s'", dir->path);
	dir->blobs = openat(fd, "blobs/sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->blobs < 0 && errno == ENOENT)
		return -ENOENT;
	if (dir->blobs < 0)
		return err_sys(err, "opening '%s/blobs/sha256'", dir->path);
	dir->fd = TAKE_FD(fd);
	return 0;
}

static int on_other(const char *name, unsigned char type, void *ctx)
{
	static const char *const ours[] = { "oci-layout", "index.json", "blobs", ".snapcow-lock" };

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcmp(name, ours[i]) == 0)
			return 0;
	*(bool *)ctx = true;
	return 0;
}

int dir_check_strange(struct dir_depot *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool other = false;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "using '%s' as a remote", dir->path);
	r = sys_each_name(fd, on_other, &other);
	if (r < 0)
		return err_set(err, r, "reading '%s': %s", dir->path, strerror(-r));
	return other ? err_set(err, -EEXIST,
			       "'%s' holds other things: a remote wants a directory of its own",
			       dir->path)
		     : 0;
}

int dir_lock(struct dir_depot *dir, int *ret, struct err *err)
{
	AUTO_CLOSE int fd =
	    openat(dir->fd, ".snapcow-lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd < 0)
		return err_sys(err, "opening '%s/.snapcow-lock'", dir->path);
	while (flock(fd, LOCK_EX) < 0) {
		if (errno != EINTR)
			return err_sys(err, "locking '%s'", dir->path);
	}
	*ret = TAKE_FD(fd);
	return 0;
}
