/*
 * proc-linux.c - the /proc of a run: its own processes, and the kernel's files that programs need.
 *
 * hidepid=4 shows only processes that the reader could trace. The init, and every other process of
 * ours in there, is not dumpable and has the memory of a process outside. So it is not in /proc at
 * all, and /proc/1/exe, which led attackers of runc to its own binary (CVE-2019-5736), does not
 * exist.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/size.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

/* What tells of the machine or commands it.  Those that this kernel lacks are skipped. */
static const char *const masked[] = {
	"acpi",         "asound",        "bus",         "config.gz",     "driver",
	"fs",           "interrupts",    "iomem",       "ioports",       "irq",
	"kallsyms",     "kcore",         "key-users",   "keys",          "kmsg",
	"kpagecgroup",  "kpagecount",    "kpageflags",  "latency_stats", "modules",
	"pagetypeinfo", "sched_debug",   "scsi",        "slabinfo",      "sysrq-trigger",
	"sysvipc",      "timer_list",    "timer_stats", "tty",           "vmallocinfo",
	"mtrr",         "dynamic_debug", "pressure",
};

#define MASK (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)

int proc_mount(struct err *err)
{
	AUTO_CLOSE int fs = mount_fs_open("proc"), proc = -1;

	if (fs < 0 || mount_fs_set(fs, "hidepid", "4") < 0)
		return err_sys(err, "preparing the /proc of the run");
	proc = mount_fs_make(fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (proc < 0 && errno == EPERM)
		return err_set(
		    err, -EPERM,
		    "making the /proc of the run: the /proc here has parts covered, as in "
		    "a container, and the kernel then gives no whole one");
	if (proc < 0)
		return err_sys(err, "making the /proc of the run");
	return TAKE_FD(proc);
}

static int cover(int target, int with, const char *name, struct err *err)
{
	struct mount_attr attr = { .attr_set = MASK, .propagation = MOUNT_PRIVATE };
	AUTO_CLOSE int tree =
	    mount_open_tree(with, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || mount_set(tree, 0, &attr) < 0 || mount_attach(tree, target) < 0)
		return err_sys(err, "covering '/proc/%s' of the run", name);
	return 0;
}

#define WATCH_PART 4 /* a run has at most this fraction of what a user has */

/* A number in a file of /proc; 0 if there is none. */
static uint64_t read_number(int proc, const char *name)
{
	AUTO_CLOSE int fd = openat(proc, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[32] = "";
	uint64_t number;
	ssize_t n = fd < 0 ? fd : fdio_read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return size_parse_u64(text, &number) < 0 ? 0 : number;
}

/* Where the kernel has no such number, or something outside of us keeps /proc/sys closed, it is left. */
static int bound_number(int proc, const char *name, uint64_t most, struct err *err)
{
	AUTO_CLOSE int fd = openat(proc, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[32];
	int len = snprintf(text, sizeof(text), "%" PRIu64, most);
	int r = fd < 0 ? -errno : fdio_write(fd, text, (size_t)len);

	if (r == -ENOENT || r == -EACCES || r == -EPERM || r == -EROFS)
		return 0;
	return r < 0 ? err_set(err, r, "bounding '/proc/%s' of the run", name) : 0;
}

/*
 * What a run watches with inotify counts for its user outside, too: with all of it in a run, systemd and
 * editors could watch nothing.
 */
static int bound_watches(int proc, struct err *err)
{
	const uint64_t instances = read_number(proc, "sys/fs/inotify/max_user_instances");
	const uint64_t watches = read_number(proc, "sys/fs/inotify/max_user_watches");
	int r = 0;

	if (instances >= WATCH_PART)
		r = bound_number(proc, "sys/user/max_inotify_instances", instances / WATCH_PART,
				 err);
	if (r == 0 && watches >= WATCH_PART)
		r = bound_number(proc, "sys/user/max_inotify_watches", watches / WATCH_PART, err);
	return r;
}

int proc_mask(int root, int empty_dir, int empty_file, struct err *err)
{
	AUTO_CLOSE int proc = mount_openat2(root, "proc", O_PATH | O_DIRECTORY, RESOLVE_BENEATH);
	int r = 0;

	if (proc < 0)
		return err_sys(err, "opening '/proc' of the run");
	r = bound_watches(proc, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(masked); i++) {
		/* A directory refuses O_NOFOLLOW never and O_DIRECTORY tells the two apart. */
		AUTO_CLOSE int dir =
		    openat(proc, masked[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		AUTO_CLOSE int file = -1;

		if (dir >= 0) {
			r = cover(dir, empty_dir, masked[i], err);
			continue;
		}
		file = openat(proc, masked[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (file >= 0)
			r = cover(file, empty_file, masked[i], err);
		else if (errno != ENOENT)
			r = err_sys(err, "looking at '/proc/%s' of the run", masked[i]);
	}
	if (r == 0) {
		AUTO_CLOSE int sys = openat(proc, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (sys < 0)
			return err_sys(err, "opening '/proc/sys' of the run");
		r = cover(sys, sys, "sys", err);
	}
	return r;
}
