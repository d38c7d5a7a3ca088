/*
 * owner-linux.c - chown(2) of a run that has but one id: recorded, since the kernel cannot do it.
 *
 * In a user namespace with one id, no file can belong to another.  The file system that the run has as its
 * root keeps owners all the same, and takes them as an extended attribute, OWNER_NAME, that the run itself
 * may not set: it needs CAP_SYS_ADMIN of the namespace.  So the list of system calls hands chown(2) to the
 * caller, and the caller to a clerk: the process that made the mount, which is in the run's user namespace
 * and in none of its others.  Nobody in the run can see it.
 *
 * The clerk takes the root of the thread that asks, opens the file as that thread would, without reading
 * it, and sets the attribute.  Whatever a path leads to is in the run's own mounts.  If its thread is gone
 * and another has its number, the clerk has no rights there: they end with the run's user namespace.  The
 * caller does not wait for it: one call is out at a time, and the answer comes as one more event of its loop.
 * When the clerk is dead, a warning and the result say so, and the answer is what it always is without one:
 * done, and nothing was.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "runner/sandbox-i.h"

#define FUSE_MAGIC 0x65735546 /* FUSE_SUPER_MAGIC of <linux/magic.h>, from Linux 5.18 on there */
#define OWNER_NAME "security.snapcow.owner"
#define CAPABILITY "security.capability"
#define KEPT       UINT32_MAX /* chown(2): this one stays */
#define UNRECORDED 1          /* an answer of the clerk's: it may not look at the call */

#define AT_LINE 3
#define AT_PROC 4

/* --- the call ----------------------------------------------------------------------------- */

struct chown_call {
	int dir;       /* AT_FDCWD, or a descriptor of the run's */
	uint64_t path; /* in its memory; 0: the descriptor itself */
	uint32_t uid, gid;
	int flags; /* AT_ */
};

struct owner_ask {
	pid_t thread;
	struct chown_call call;
};

/* false: it is another call. */
static bool read_call(const struct seccomp_data *data, struct chown_call *ret)
{
	const uint64_t *a = (const uint64_t *)data->args;

	*ret = (struct chown_call){ .dir = AT_FDCWD };
	switch (data->nr) {
	case SYS_fchown:
		*ret = (struct chown_call){ (int)a[0], 0, (uint32_t)a[1], (uint32_t)a[2],
					    AT_EMPTY_PATH };
		return true;
	case SYS_fchownat:
		*ret = (struct chown_call){ (int)a[0], a[1], (uint32_t)a[2], (uint32_t)a[3],
					    (int)a[4] };
		return true;
#ifdef SYS_chown
	case SYS_chown:
	case SYS_lchown:
		*ret = (struct chown_call){ AT_FDCWD, a[0], (uint32_t)a[1], (uint32_t)a[2],
					    data->nr == SYS_lchown ? AT_SYMLINK_NOFOLLOW : 0 };
		return true;
#endif
	default:
		return false;
	}
}

/* --- the clerk ---------------------------------------------------------------------------- */

/* A string in the memory of the run, page by page; its length, or a negative errno. */
static ssize_t read_path(pid_t thread, uint64_t at, char path[static PATH_MAX])
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = 0;

	while (len < PATH_MAX) {
		const size_t rest = page - (size_t)((at + len) % page);
		const size_t n = rest < PATH_MAX - len ? rest : PATH_MAX - len;
		struct iovec here = { path + len, n };
		struct iovec there = { (void *)(uintptr_t)(at + len), n }; // NOLINT
		const char *end;

		if (process_vm_readv(thread, &here, 1, &there, 1, 0) != (ssize_t)n)
			return errno == EPERM ? -EPERM : -EFAULT;
		end = memchr(path + len, '\0', n);
		if (end)
			return end - path;
		len += n;
	}
	return -ENAMETOOLONG;
}

static int open_of(pid_t thread, const char *what)
{
	char name[64];
	const int n = snprintf(name, sizeof(name), "%d/%s", (int)thread, what);
	const int fd = n > 0 ? openat(AT_PROC, name, O_PATH | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

static int enter_root(pid_t thread)
{
	AUTO_CLOSE int root = open_of(thread, "root");

	if (root < 0)
		return root;
	return fchdir(root) < 0 || chroot(".") < 0 ? -errno : 0;
}

static int open_dir(pid_t thread, int dir)
{
	char name[32];
	int fd;

	if (dir == AT_FDCWD)
		return open_of(thread, "cwd");
	snprintf(name, sizeof(name), "fd/%d", dir);
	fd = dir < 0 ? -EBADF : open_of(thread, name);
	return fd == -ENOENT ? -EBADF : fd;
}

/*
 * The number of a descriptor that a path names, or -1.  The clerk has no process in the run's /proc, so these
 * lead nowhere for it.  Only whole names: what follows them could lead up, out of the run's root.
 */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = { "/proc/self/fd/", "/proc/thread-self/fd/",
					       "/dev/fd/" };
	static const char *const streams[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };

	for (int i = 0; i < (int)ARRAY_LEN(streams); i++)
		if (strcmp(path, streams[i]) == 0)
			return i;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		const char *digits = path + strlen(folders[i]);
		const size_t n = strncmp(path, folders[i], strlen(folders[i])) == 0
				     ? strspn(digits, "0123456789")
				     : 0;

		if (n > 0 && n < 10 && digits[n] == '\0')
			return atoi(digits); // NOLINT
	}
	return -1;
}

/* What the call means, as with O_PATH. */
static int open_file(const struct owner_ask *ask, const char *path)
{
	const struct chown_call *c = &ask->call;
	const size_t len = strlen(path);
	AUTO_CLOSE int dir = -1;
	int fd;

	fd = enter_root(ask->thread);
	if (fd < 0)
		return fd;
	/* An absolute path needs no directory, and none is looked at. */
	if (path[0] != '/') {
		dir = open_dir(ask->thread, c->dir);
		if (dir < 0)
			return dir;
	}
	if (len == 0)
		return c->flags & AT_EMPTY_PATH ? TAKE_FD(dir) : -ENOENT;
	fd = openat(dir, path,
		    O_PATH | O_CLOEXEC | (c->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (fd != -ENOENT || c->flags & AT_SYMLINK_NOFOLLOW || named_descriptor(path) < 0)
		return fd;
	fd = open_dir(ask->thread, named_descriptor(path));
	return fd == -EBADF ? -ENOENT : fd;
}

/* As chown(2) does it, root's too. */
static int drop_privileges(const char *name, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;

	if (!S_ISREG(st->st_mode))
		return 0;
	if (removexattr(name, CAPABILITY) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
		return -errno;
	if (!(mode & (S_ISUID | S_ISGID)))
		return 0;
	mode &= (mode_t)~S_ISUID;
	if (mode & S_IXGRP)
		mode &= (mode_t)~S_ISGID;
	return chmod(name, mode) < 0 ? -errno : 0;
}

static int record(int file, uint32_t uid, uint32_t gid)
{
	AUTO_CLOSE int self = openat(AT_PROC, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char value[32], name[16];
	struct statfs fs;
	struct stat st;
	int r;

	/* Elsewhere files have no owner that stays: /tmp and /run end with the run. */
	if (fstatfs(file, &fs) < 0 || fs.f_type != FUSE_MAGIC)
		return 0;
	if (self < 0 || fchdir(self) < 0 || fstat(file, &st) < 0)
		return -errno;
	snprintf(name, sizeof(name), "%d", file);
	r = drop_privileges(name, &st);
	if (r < 0 || (uid == KEPT && gid == KEPT))
		return r;
	snprintf(value, sizeof(value), "%lld:%lld", uid == KEPT ? -1LL : (long long)uid,
		 gid == KEPT ? -1LL : (long long)gid);
	return setxattr(name, OWNER_NAME, value, strlen(value), 0) < 0 ? -errno : 0;
}

static int answer_ask(const struct owner_ask *ask)
{
	char path[PATH_MAX] = "";
	AUTO_CLOSE int file = -1;
	ssize_t len = 0;

	if (ask->call.flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	if (ask->call.path != 0)
		len = read_path(ask->thread, ask->call.path, path);
	if (len < 0)
		return len == -EPERM ? UNRECORDED : (int)len;
	file = open_file(ask, path);
	return file < 0 ? file : record(file, ask->call.uid, ask->call.gid);
}

/* Without all else that it had when it was forked: pipes of the run must end with the run. */
static int keep_only(int line)
{
	AUTO_CLOSE int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int far_line = fcntl(line, F_DUPFD_CLOEXEC, 16);
	AUTO_CLOSE int far_proc = proc < 0 ? -1 : fcntl(proc, F_DUPFD_CLOEXEC, 16);

	if (far_line < 0 || far_proc < 0)
		return -errno;
	if (dup2(far_line, AT_LINE) < 0 || dup2(far_proc, AT_PROC) < 0)
		return -errno;
	proc = far_line = far_proc = -1;
	for (int fd = 0; fd < AT_LINE; fd++)
		close(fd);
	return syscall(SYS_close_range, AT_PROC + 1, ~0u, 0) < 0 ? -errno : 0;
}

static ssize_t receive(int line, void *to, size_t len)
{
	ssize_t n;

	do
		n = recv(line, to, len, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

void owner_serve(int line)
{
	struct owner_ask ask;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || keep_only(line) < 0)
		return;
	while (receive(AT_LINE, &ask, sizeof(ask)) == (ssize_t)sizeof(ask)) {
		const int answer = answer_ask(&ask);

		if (send(AT_LINE, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return;
	}
}

/* --- the caller --------------------------------------------------------------------------- */

void owner_end(struct owner *o)
{
	cleanup_close(&o->line);
	o->line = -1;
	if (o->clerk <= 0)
		return;
	kill(o->clerk, SIGKILL);
	while (waitpid(o->clerk, NULL, 0) < 0 && errno == EINTR)
		;
	o->clerk = 0;
}

static void lose(struct owner *o, const char *why)
{
	if (!o->lost)
		log_warn("not all owners of files are recorded: %s", why);
	o->lost = true;
}

static void lose_clerk(struct owner *o)
{
	lose(o, "the process that does it is gone");
	owner_end(o);
}

bool owner_ask(struct owner *o, uint64_t id, pid_t thread, const struct seccomp_data *data)
{
	struct owner_ask ask = { .thread = thread };

	if (!read_call(data, &ask.call))
		return false;
	if (o->line >= 0 && send(o->line, &ask, sizeof(ask), MSG_NOSIGNAL) < 0)
		lose_clerk(o);
	o->waits = o->line >= 0;
	o->id = id;
	return o->waits;
}

int owner_hear(struct owner *o)
{
	int answer = 0;

	o->waits = false;
	if (receive(o->line, &answer, sizeof(answer)) != (ssize_t)sizeof(answer)) {
		lose_clerk(o);
		return 0;
	}
	if (answer == UNRECORDED)
		lose(o, "a program of the run hides its memory");
	return answer < 0 ? answer : 0;
}
