/*
 * dev-linux.c - the /dev of a run: nothing that could be used on the machine.
 *
 * The devices are mounts of the host's nodes, because a user namespace may make none. Each is
 * checked to be the right device: a /dev/null that somebody replaced would be a file of the host
 * that the run can write (CVE-2025-31133).
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

/* Major and minor as Documentation/admin-guide/devices.txt of the kernel has them. */
static const struct device {
	const char *host, *guest;
	unsigned int major, minor;
} devices[] = {
	{ "/dev/null", "/dev/null", 1, 3 },       { "/dev/zero", "/dev/zero", 1, 5 },
	{ "/dev/full", "/dev/full", 1, 7 },       { "/dev/random", "/dev/random", 1, 8 },
	{ "/dev/urandom", "/dev/urandom", 1, 9 }, { "/dev/tty", "/dev/tty", 5, 0 },
};

static const char *const links[][2] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

static int add_device(int root, const struct device *d, struct err *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
		.propagation = MOUNT_PRIVATE,
	};
	AUTO_CLOSE int tree = mount_open_tree(
	    AT_FDCWD, d->host, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	AUTO_CLOSE int target = -1;
	struct stat st;

	if (tree < 0)
		return err_sys(err, "opening '%s' to show it to the run", d->host);
	if (fstat(tree, &st) < 0)
		return err_sys(err, "looking at '%s'", d->host);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(d->major, d->minor))
		return err_set(err, -ENODEV, "'%s' is not the device it should be", d->host);

	target = target_open(root, d->guest, false, err);
	if (target < 0)
		return target;
	if (mount_set(tree, 0, &attr) < 0 || mount_attach(tree, target) < 0)
		return err_sys(err, "mounting '%s' of the run", d->guest);
	return 0;
}

static int add_terminals(int root, struct err *err)
{
	AUTO_CLOSE int fs = mount_fs_open("devpts"), pts = -1, target = -1;

	if (fs < 0 || mount_fs_set(fs, "mode", "0620") < 0 ||
	    mount_fs_set(fs, "ptmxmode", "0666") < 0)
		return err_sys(err, "preparing the terminals of the run");
	pts = mount_fs_make(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (pts < 0)
		return err_sys(err, "making the terminals of the run");
	target = target_open(root, "/dev/pts", true, err);
	if (target < 0)
		return target;
	if (mount_attach(pts, target) < 0)
		return err_sys(err, "mounting '/dev/pts' of the run");
	return 0;
}

int dev_build(int root, struct err *err)
{
	AUTO_CLOSE int dev = target_open(root, "/dev", true, err);
	int r = 0;

	if (dev < 0)
		return dev;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(devices); i++)
		r = add_device(root, &devices[i], err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(links); i++) {
		if (symlinkat(links[i][1], dev, links[i][0]) < 0)
			r = err_sys(err, "making '/dev/%s' of the run", links[i][0]);
	}
	return r < 0 ? r : add_terminals(root, err);
}
