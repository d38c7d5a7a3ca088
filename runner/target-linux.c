#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* One name further down; what is missing is made.  Descriptor or -errno. */
static int step_down(int at, const char *name, bool dir)
{
	int fd = mount_openat2(at, name, O_PATH | O_NOFOLLOW, BENEATH);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	if (dir && mkdirat(at, name, 0755) < 0)
		return -errno;
	if (!dir) {
		AUTO_CLOSE int made =
		    openat(at, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);

		if (made < 0)
			return -errno;
	}
	fd = mount_openat2(at, name, O_PATH | O_NOFOLLOW, BENEATH);
	return fd < 0 ? -errno : fd;
}

int target_parent(int root, const char *guest, int *owned, const char **ret_name, struct err *err)
{
	char name[PATH_NAME_MAX + 1];
	const char *rest = guest + 1, *slash;
	int at = root;

	while ((slash = strchr(rest, '/'))) {
		memcpy(name, rest, (size_t)(slash - rest));
		name[slash - rest] = '\0';
		at = step_down(at, name, true);
		if (at < 0)
			return err_wrap(err, at, "making '%s' in the root of the run", guest);
		cleanup_close(owned);
		*owned = at;
		rest = slash + 1;
	}
	*ret_name = rest;
	return at;
}

int target_open(int root, const char *guest, bool dir, struct err *err)
{
	AUTO_CLOSE int owned = -1, fd = -1;
	const char *name;
	struct stat st;
	int at = target_parent(root, guest, &owned, &name, err);

	if (at < 0)
		return at;
	fd = step_down(at, name, dir);
	if (fd < 0)
		return err_wrap(err, fd, "making '%s' in the root of the run", guest);
	if (fstat(fd, &st) < 0)
		return err_sys(err, "looking at '%s' of the run", guest);
	if (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode) != dir)
		return err_set(err, dir ? -ENOTDIR : -EISDIR,
			       "'%s' of the run is no %s to mount on", guest,
			       dir ? "directory" : "file");
	return TAKE_FD(fd);
}
