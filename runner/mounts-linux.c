/*
 * mounts-linux.c - the root of a run: built on a tmpfs, by descriptor, and pivoted into.
 *
 * The host's tree is still in reach while this runs, as the copy that came with the mount
 * namespace. It is detached as a whole at the end, so nothing that was not put into the new root is
 * there, not even in mountinfo. No path is built from parts and opened again: a source is opened
 * once, without following symlinks, and a target is walked to name by name beneath the new root
 * (CVE-2019-19921, CVE-2021-30465 and their kin are races between two lookups of one name).
 *
 * One tmpfs holds the root and all fresh directories. The root's own mount is made read-only last;
 * each fresh directory has a mount of its own over itself that stays writable. A run with a root of
 * its own (root-linux.c) has that mounted in the tmpfs, and pivots into it: then only the fresh
 * directories are left of the tmpfs, which itself has no name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

#define PLAIN   (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define BENEATH (RESOLVE_BENEATH | PLAIN)

#define TREE  (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)
#define TAMED (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* Files in what is fresh: so many, and one more for each of so many bytes that it may hold. */
#define NAMES_MIN  4096
#define BYTES_EACH 4096

int mounts_open_host(const struct sandbox_mount *m, struct err *err)
{
	AUTO_CLOSE int fd = mount_openat2(AT_FDCWD, m->host, O_PATH | O_NOFOLLOW, PLAIN);
	struct stat is, was;

	if (fd < 0 && errno == ELOOP)
		return err_set(err, -ELOOP, "'%s' has a symlink in it, and is not followed",
			       m->host);
	if (fd < 0)
		return err_sys(err, "opening '%s' to show it to the run", m->host);
	if (fstat(fd, &is) < 0)
		return err_sys(err, "looking at '%s'", m->host);
	if (S_ISLNK(is.st_mode))
		return err_set(err, -ELOOP, "'%s' is a symlink, and is not followed", m->host);
	if (m->host_fd < 0)
		return TAKE_FD(fd);

	if (fstat(m->host_fd, &was) < 0)
		return err_sys(err, "looking at what '%s' was", m->host);
	if (is.st_dev != was.st_dev || is.st_ino != was.st_ino)
		return err_set(err, -ESTALE, "'%s' is not what it was when the run was asked for",
			       m->host);
	return TAKE_FD(fd);
}

/* Give a tree that is nowhere yet its attributes, with all below it, and attach it. */
static int attach(int tree, int target, uint64_t attrs, const char *guest, struct err *err)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MOUNT_PRIVATE };

	if (mount_set(tree, AT_RECURSIVE, &attr) < 0)
		return err_sys(err, "closing the mount '%s' of the run", guest);
	if (mount_attach(tree, target) < 0)
		return err_sys(err, "mounting '%s' of the run", guest);
	return 0;
}

static int bind(int root, const struct sandbox_mount *m, int given, struct err *err)
{
	uint64_t attrs = TAMED | (m->writable ? 0 : MOUNT_ATTR_RDONLY);
	AUTO_CLOSE int source = given < 0 ? mounts_open_host(m, err) : -1;
	AUTO_CLOSE int made = -1, target = -1;
	struct stat st;

	if (given < 0 && source < 0)
		return source;
	if (given < 0) {
		made = mount_open_tree(source, "", TREE | AT_RECURSIVE);
		if (made < 0)
			return err_sys(err, "cloning the mount of '%s'", m->host);
	}
	if (fstat(given < 0 ? made : given, &st) < 0)
		return err_sys(err, "looking at '%s'", m->host);
	target = target_open(root, m->guest, S_ISDIR(st.st_mode), err);
	if (target < 0)
		return target;
	return attach(given < 0 ? made : given, target, attrs, m->guest, err);
}

/*
 * The directory to show at `target`: itself, if it is of the root's tmpfs.  Where something of the
 * host is bound there already, a directory in that would be the host's, and be opened to the run: one
 * of the tmpfs is mounted over it instead.
 */
static int fresh_source(int scratch, int target, const char *guest, struct err *err)
{
	char name[64];
	struct stat is, own;

	if (fstat(target, &is) < 0 || fstat(scratch, &own) < 0)
		return err_sys(err, "looking at '%s' of the run", guest);
	if (is.st_dev == own.st_dev)
		return fcntl(target, F_DUPFD_CLOEXEC, 3);
	snprintf(name, sizeof(name), "/.fresh-%llx-%llx", (unsigned long long)is.st_dev,
		 (unsigned long long)is.st_ino);
	return target_open(scratch, name, true, err);
}

/* A directory of the root's tmpfs, under a mount of its own that stays writable. */
static int fresh(const struct run *run, const char *guest, mode_t mode, struct err *err)
{
	AUTO_CLOSE int target = target_open(run->root, guest, true, err), source = -1, tree = -1;

	if (target < 0)
		return target;
	source = fresh_source(run->scratch, target, guest, err);
	if (source < 0)
		return source;
	tree = mount_open_tree(source, "", TREE);
	if (tree < 0)
		return err_sys(err, "cloning the mount of '%s' of the run", guest);
	if (fchmodat(tree, ".", mode, 0) < 0)
		return err_sys(err, "opening '%s' of the run to its users", guest);
	return attach(tree, target, TAMED, guest, err);
}

/* 1, with *ret; 0 if nothing is there, or a symlink: what it leads to is hidden by its own name, or not in the root. */
static int find_to_hide(int root, const struct sandbox_mount *m, int *ret, struct stat *st,
			struct err *err)
{
	AUTO_CLOSE int target = mount_openat2(root, m->guest + 1, O_PATH | O_NOFOLLOW, BENEATH);

	if (target < 0 && (errno == ENOENT || errno == ENOTDIR) && m->ino == 0)
		return 0;
	if (target < 0)
		return err_sys(err, "looking for '%s' of the run to hide it", m->guest);
	if (fstat(target, st) < 0)
		return err_sys(err, "looking at '%s' of the run", m->guest);
	if (m->ino != 0 && st->st_ino != m->ino)
		return err_set(err, -ESTALE, "'%s' of the run, which is to be hidden, was replaced",
			       m->guest);
	if (S_ISLNK(st->st_mode))
		return 0;
	*ret = TAKE_FD(target);
	return 1;
}

static int hide(const struct run *run, const struct sandbox_mount *m, struct err *err)
{
	AUTO_CLOSE int target = -1, tree = -1;
	struct stat st;
	int r = find_to_hide(run->root, m, &target, &st, err);

	if (r <= 0)
		return r;
	tree = mount_open_tree(S_ISDIR(st.st_mode) ? run->empty_dir : run->empty_file, "", TREE);
	if (tree < 0)
		return err_sys(err, "making the mask of '%s' of the run", m->guest);
	return attach(tree, target, TAMED | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, m->guest, err);
}

static int add_link(int root, const struct sandbox_mount *m, struct err *err)
{
	AUTO_CLOSE int owned = -1;
	const char *name;
	int at = target_parent(root, m->guest, &owned, &name, err);

	if (at < 0)
		return at;
	if (symlinkat(m->host, at, name) < 0)
		return err_sys(err, "making the symlink '%s' of the run", m->guest);
	return 0;
}

static bool is_file(int root, const char *guest)
{
	AUTO_CLOSE int fd = mount_openat2(root, guest + 1, O_PATH | O_NOFOLLOW, BENEATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* A file of the root's tmpfs that has no name there, but where it is mounted. */
static int add_text(const struct run *run, const struct sandbox_mount *m, struct err *err)
{
	static const char name[] = ".text";
	AUTO_CLOSE int target = -1, file = -1, tree = -1;
	const int root = run->scratch;
	int r;

	if (m->only_over && !is_file(run->root, m->guest))
		return 0;
	target = target_open(run->root, m->guest, false, err);
	if (target < 0)
		return target;
	file = openat(root, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444);
	if (file < 0)
		return err_sys(err, "making '%s' of the run", m->guest);
	r = fdio_write(file, m->host, strlen(m->host));
	if (r < 0)
		return err_wrap(err, r, "writing '%s' of the run", m->guest);
	tree = mount_open_tree(root, name, TREE);
	if (tree < 0)
		return err_sys(err, "cloning the mount of '%s' of the run", m->guest);
	r = attach(tree, target, TAMED | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, m->guest, err);
	/* Not before: what has no name cannot be attached. */
	if (r == 0 && unlinkat(root, name, 0) < 0)
		r = err_sys(err, "making '%s' of the run", m->guest);
	return r;
}

static int add(struct run *run, size_t i, struct err *err)
{
	const struct sandbox_mount *m = &run->spec->mounts[i];

	switch (m->kind) {
	case SANDBOX_BIND:
		return bind(run->root, m, run->trees[i], err);
	case SANDBOX_FRESH:
		return fresh(run, m->guest, 0777 | S_ISVTX, err);
	case SANDBOX_HIDE:
		return hide(run, m, err);
	case SANDBOX_LINK:
		return add_link(run->root, m, err);
	case SANDBOX_TEXT:
		return add_text(run, m, err);
	}
	return err_set(err, -EINVAL, "'%s' is no kind of mount", m->guest);
}

/* In order; before the caller's word up to the first whose tree only the caller can make. */
static int add_next(struct run *run, bool known, struct err *err)
{
	int r = 0;

	for (; r == 0 && run->n_mounted < run->spec->n_mounts; run->n_mounted++) {
		const struct sandbox_mount *m = &run->spec->mounts[run->n_mounted];

		if (!known && m->kind == SANDBOX_BIND && m->owned)
			break;
		r = add(run, run->n_mounted, err);
	}
	return r;
}

/* The tmpfs, attached over the host's root, where nothing looks for it by name. */
static int make_root(const struct sandbox_spec *spec, struct err *err)
{
	AUTO_CLOSE int fs = mount_fs_open("tmpfs"), root = -1, slash = -1;
	struct mount_attr private = { .propagation = MOUNT_PRIVATE };
	const unsigned long long bytes = spec->limits.tmp;
	char size[32], names[32];

	slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (slash < 0)
		return err_sys(err, "opening '/'");
	if (mount_set(slash, AT_RECURSIVE, &private) < 0)
		return err_sys(err, "making the mounts of the run its own");

	/* An empty file takes none of the size but a KiB of the kernel's memory. */
	snprintf(size, sizeof(size), "%llu", bytes);
	snprintf(names, sizeof(names), "%llu", bytes > 0 ? NAMES_MIN + bytes / BYTES_EACH : 0);
	if (fs < 0 || mount_fs_set(fs, "mode", "0755") < 0 || mount_fs_set(fs, "size", size) < 0 ||
	    mount_fs_set(fs, "nr_inodes", names) < 0)
		return err_sys(err, "preparing the tmpfs of the run");
	root = mount_fs_make(fs, TAMED);
	if (root < 0)
		return err_sys(err, "making the tmpfs of the run");
	if (mount_attach(root, slash) < 0)
		return err_sys(err, "mounting the tmpfs of the run");
	return TAKE_FD(root);
}

/* Something that is still mounted over the root would be seen through "..", and by nothing else. */
static int check_bare(int root, struct err *err)
{
	struct stat is, above;

	if (fstat(root, &is) < 0 || stat("/..", &above) < 0)
		return err_sys(err, "looking at the root of the run");
	if (is.st_dev != above.st_dev || is.st_ino != above.st_ino)
		return err_set(err, -EXDEV, "the old root is still mounted over the run's root");
	return 0;
}

/* `root` must be mounted in the present root, or directly over it: a third mount there would stay. */
static int pivot(int root, struct err *err)
{
	if (fchdir(root) < 0)
		return err_sys(err, "entering the root of the run");
	/* The old root ends up on top of the new one, and is the one that "." unmounts. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(err, "making the root of the run its root");
	if (syscall(SYS_umount2, ".", MOUNT_DETACH) < 0)
		return err_sys(err, "leaving the root of the host");
	if (chdir("/") < 0)
		return err_sys(err, "entering the root of the run");
	return check_bare(root, err);
}

/* The host's tree goes first, and then the tmpfs, if the run has a root of its own in it. */
static int enter_root(const struct run *run, struct err *err)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY };
	int r = pivot(run->scratch, err);

	if (r < 0 || run->root != run->scratch)
		return r < 0 ? r : pivot(run->root, err);
	if (mount_set(run->scratch, 0, &closed) < 0)
		return err_sys(err, "closing the root of the run");
	return 0;
}

static int attach_proc(int root, int proc, struct err *err)
{
	AUTO_CLOSE int target = target_open(root, "/proc", true, err);

	if (target < 0)
		return target;
	if (mount_attach(proc, target) < 0)
		return err_sys(err, "mounting '/proc' of the run");
	return 0;
}

static int make_masks(struct run *run, struct err *err)
{
	run->empty_dir = target_open(run->scratch, "/.empty", true, err);
	if (run->empty_dir < 0)
		return run->empty_dir;
	run->empty_file = target_open(run->scratch, "/.nothing", false, err);
	if (run->empty_file < 0)
		return run->empty_file;
	if (fchmodat(run->scratch, ".empty", 0, 0) < 0 ||
	    fchmodat(run->scratch, ".nothing", 0, 0) < 0)
		return err_sys(err, "closing the masks of the run");
	return 0;
}

/* /proc and /dev, in whatever the root is. */
static int furnish(struct run *run, int proc, struct err *err)
{
	int r = attach_proc(run->root, proc, err);

	if (r == 0)
		r = proc_mask(run->root, run->empty_dir, run->empty_file, err);
	if (r == 0)
		r = dev_build(run->root, err);
	return r < 0 ? r : fresh(run, "/dev/shm", 0777 | S_ISVTX, err);
}

/* Nobody makes anything in /dev, as in a root on the tmpfs; what is mounted below it stays as it is. */
static int close_dev(const struct run *run, struct err *err)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY };
	AUTO_CLOSE int dev = target_open(run->root, "/dev", true, err);

	if (dev < 0)
		return dev;
	return mount_set(dev, 0, &closed) < 0 ? err_sys(err, "closing '/dev' of the run") : 0;
}

/* The clone is served by now. */
/* A clone of a machine has no homes, and many programs do not start without one. */
static int make_home(const struct run *run, struct err *err)
{
	const char *home = run->spec->root->home;

	if (home && mkdirat(run->root, home + 1, 0700) < 0 && errno != EEXIST && errno != ENOENT)
		return err_sys(err, "making '%s' in the root of the run", home);
	return 0;
}

static int enter_clone(struct run *run, struct err *err)
{
	struct mount_attr private = { .propagation = MOUNT_PRIVATE };
	AUTO_CLOSE int target = target_open(run->scratch, "/.root", true, err);
	int r;

	if (target < 0)
		return target;
	if (mount_set(run->clone, 0, &private) < 0 || mount_attach(run->clone, target) < 0)
		return err_sys(err, "mounting the root of the run");
	run->root = run->clone;
	r = make_home(run, err);
	if (r == 0)
		r = fresh(run, "/dev", 0755, err);
	if (r == 0)
		r = furnish(run, run->proc, err);
	return r < 0 ? r : close_dev(run, err);
}

/* Its descriptors end with all others when the init has forked. */
int mounts_begin(struct run *run, struct err *err)
{
	AUTO_CLOSE int proc = proc_mount(err);
	int r;

	/* First of all: the kernel mounts a new /proc only while the caller sees a whole old one. */
	if (proc < 0)
		return proc;
	run->root = run->scratch = make_root(run->spec, err);
	if (run->root < 0)
		return run->root;
	r = make_masks(run, err);
	if (r < 0)
		return r;
	if (run->spec->root) {
		run->proc = TAKE_FD(proc);
		return 0;
	}
	r = furnish(run, proc, err);
	return r < 0 ? r : add_next(run, false, err);
}

/* What was to be hidden stays where it was found only for so long. */
static int check_time(const struct sandbox_spec *spec, struct err *err)
{
	if (spec->mounted_by_ms == 0 || clock_ms() < spec->mounted_by_ms)
		return 0;
	return err_set(
	    err, -ESTALE,
	    "what the run sees was mounted too late, and what is to be hidden may have been "
	    "moved meanwhile: try again");
}

int mounts_enter(struct run *run, struct err *err)
{
	int r = run->spec->root ? enter_clone(run, err) : 0;

	if (r == 0)
		r = add_next(run, true, err);
	if (r == 0)
		r = check_time(run->spec, err);
	if (r < 0)
		return r;
	if (unlinkat(run->scratch, ".empty", AT_REMOVEDIR) < 0 ||
	    unlinkat(run->scratch, ".nothing", 0) < 0)
		return err_sys(err, "removing the names of the masks of the run");
	return enter_root(run, err);
}
