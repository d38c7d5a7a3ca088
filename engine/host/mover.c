/*
 * Renaming a directory with a mount on it is refused in the mount namespace that has the mount, and
 * allowed in every other (Linux 3.18). The mount belongs to the directory, not to its name, so it
 * moves along. So a process of its own, in a namespace without any mounts, can do for an ordinary
 * user what move_mount(2) does for root.
 */
#include "engine/api/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"

/* The directory that holds it, opened while it can be seen; cuts `path` off behind it. */
static int open_above(char *path, const char **ret_name)
{
	char *end = strrchr(path, '/');
	int fd;

	if (!end || end == path || end[1] == '\0')
		return -EINVAL;
	*end = '\0';
	*ret_name = end + 1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int move(char *from, char *to)
{
	const char *old = NULL, *new = NULL;
	const int from_dir = open_above(from, &old), to_dir = open_above(to, &new);
	int r;

	if (from_dir < 0 || to_dir < 0)
		return from_dir < 0 ? from_dir : to_dir;
	r = sys_leave_mounts(from);
	if (r < 0)
		return r;
	return renameat(from_dir, old, to_dir, new) < 0 ? -errno : 0;
}

int mover_main(int argc, char **argv)
{
	if (argc != 3) {
		log_error("this is started by cowfsd only");
		return 2;
	}
	sys_name_process(MOVER_NAME);
	_exit(-move(argv[1], argv[2]));
}
