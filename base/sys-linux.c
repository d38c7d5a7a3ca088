#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"

/*
 * A core would hold the copies that we or a library made.  At 1 the kernel writes no file and starts no
 * program that core_pattern names; at 0 it still starts the program.
 */
static void forbid_core(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
	IGNORE_RESULT(setrlimit(RLIMIT_CORE, &limit), "the soft limit may always be lowered");
}

void *sys_map_secret(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, len, MADV_DONTFORK) < 0 || madvise(at, len, MADV_DONTDUMP) < 0) {
		munmap(at, len);
		return NULL;
	}
	forbid_core();
	return at;
}

void sys_unmap_secret(void *at, size_t len)
{
	if (!at)
		return;
	explicit_bzero(at, len);
	munmap(at, len);
}

void sys_wipe(void *at, size_t len)
{
	explicit_bzero(at, len);
}

int sys_random(void *data, size_t len)
{
	unsigned char *p = data;
	ssize_t n;

	while (len > 0) {
		n = getrandom(p, len, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int sys_sync_data(int fd)
{
	while (fdatasync(fd) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

const char *sys_errno_text(int errnum, char *text, size_t size)
{
	return strerror_r(errnum, text, size);
}

int sys_identify(const char *dir, struct sys_identity *ret)
{
	AUTO_CLOSE int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;
	struct statx st;

	_Static_assert(sizeof(fs.f_fsid) == sizeof(ret->fs), "eight bytes");
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0 ||
	    fstatfs(fd, &fs) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_BTIME))
		return -ENOTSUP;
	ret->ino = st.stx_ino;
	ret->born = st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
	memcpy(&ret->fs, &fs.f_fsid, sizeof(ret->fs));
	return 0;
}

bool sys_is_in_memory(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int sys_open_node(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int sys_open_here(int dirfd, const char *name, int flags)
{
	const struct open_how how = { .flags = (uint64_t)flags, .resolve = RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, dirfd, name, &how, sizeof(how));

	/* Before Linux 5.6, or behind a filter that knows no newer call. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dirfd, name, flags);
	return fd < 0 ? -errno : fd;
}

int sys_open_below(int dirfd, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == ENAMETOOLONG))
		return -ENOTSUP;
	return fd < 0 ? -errno : fd;
}

/* Name by name, for kernels that lack openat2(2). */
static int open_plain(const char *path)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path[0] == '/' ? "/" : ".", O_PATH | flags);

	while (fd >= 0 && *(path += strspn(path, "/")) != '\0') {
		const size_t n = strcspn(path, "/");
		char name[NAME_MAX + 1];
		int next, e;

		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		next = n > NAME_MAX ? -1 : openat(fd, name, O_PATH | flags);
		e = n > NAME_MAX ? ENAMETOOLONG : errno;
		close(fd);
		errno = e;
		fd = next;
		path += n;
	}
	return fd;
}

static int open_dir(const char *path)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)), plain;

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
	plain = open_plain(path);
	if (plain < 0)
		return plain;
	fd = openat(plain, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(plain);
	return fd;
}

int sys_open_place(const char *path, const struct sys_place *place)
{
	int fd = open_dir(path), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!place)
		return fd;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r >= 0 && (st.st_dev != place->dev || st.st_ino != place->ino))
		r = -ESTALE;
	if (r >= 0)
		return fd;
	close(fd);
	return r;
}

/* Of the longest names, 10 with attributes come in an answer of FUSE of 4 KiB: with less, it is the last. */
#define MANY_NAMES 8

int sys_each_name(int fd, sys_name_fn fn, void *ctx)
{
	char names[32 << 10] __attribute__((aligned(8)));
	/* FUSE takes memory for as much as there is room for, and few directories need more than this. */
	size_t room = 4 << 10;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getdents64(fd, names, room)) != 0) {
		size_t count = 0;

		if (n < 0)
			return -errno;
		for (ssize_t at = 0; at < n && r == 0; count++) {
			const struct dirent64 *e = (const void *)(names + at);

			at += e->d_reclen;
			if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
				r = fn(e->d_name, e->d_type, ctx);
		}
		room = count < MANY_NAMES ? 4 << 10 : sizeof(names);
	}
	return r;
}

/* Local ones.  FAT's top has no times, and of a server's the client knows what it last asked. */
bool sys_dir_times_tell(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return false;
	return st.f_type == EXT4_SUPER_MAGIC || st.f_type == XFS_SUPER_MAGIC ||
	       (unsigned long)st.f_type == BTRFS_SUPER_MAGIC || st.f_type == TMPFS_MAGIC;
}

/* The kernel refuses an O_PATH descriptor itself with EBADF, and takes it by this name. */
static const char *proc_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}

ssize_t sys_list_xattrs(int fd, char *names, size_t size)
{
	ssize_t n = flistxattr(fd, names, size);
	char path[32];

	if (n < 0 && errno == EBADF)
		n = listxattr(proc_path(fd, path), names, size);
	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	return n;
}

ssize_t sys_get_xattr(int fd, const char *name, void *value, size_t size)
{
	ssize_t n = fgetxattr(fd, name, value, size);
	char path[32];

	if (n < 0 && errno == EBADF)
		n = getxattr(proc_path(fd, path), name, value, size);
	return n < 0 ? -errno : n;
}

int sys_set_xattr(int fd, const char *name, const void *value, size_t size)
{
	int rc = fsetxattr(fd, name, value, size, 0);
	char path[32];

	if (rc < 0 && errno == EBADF)
		rc = setxattr(proc_path(fd, path), name, value, size, 0);
	return rc < 0 ? -errno : 0;
}

int sys_remove_xattr(int fd, const char *name)
{
	int rc = fremovexattr(fd, name);
	char path[32];

	if (rc < 0 && errno == EBADF)
		rc = removexattr(proc_path(fd, path), name);
	return rc < 0 ? -errno : 0;
}

/* A file system that lacks a flag says EINVAL. */
static int rename_with(int dirfd, const char *name, int new_dirfd, const char *new_name,
		       unsigned flags)
{
	if (renameat2(dirfd, name, new_dirfd, new_name, flags) == 0)
		return 0;
	return errno == EINVAL || errno == ENOSYS ? -ENOTSUP : -errno;
}

int sys_rename_new(int dirfd, const char *name, int new_dirfd, const char *new_name)
{
	return rename_with(dirfd, name, new_dirfd, new_name, RENAME_NOREPLACE);
}

int sys_exchange(int dirfd, const char *name, int other_dirfd, const char *other_name)
{
	return rename_with(dirfd, name, other_dirfd, other_name, RENAME_EXCHANGE);
}

int sys_copy_range(int from, int to, off_t off, off_t len)
{
	off_t in = off, out = off;
	ssize_t n = 1;

	while (n > 0 && in < off + len) {
		n = copy_file_range(from, &in, to, &out, (size_t)(off + len - in), 0);
		if (n < 0 && errno == EINTR)
			n = 1;
	}
	/* Nothing more, and yet not all: the file ends before, or its file system cannot say. */
	if (n >= 0)
		return in < off + len ? -ENOTSUP : 0;
	if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EPERM)
		return -ENOTSUP;
	return errno == EOPNOTSUPP ? -ENOTSUP : -errno;
}

int sys_sync_all(int fd)
{
	return syncfs(fd) < 0 ? -errno : 0;
}

/* --- processes and sockets -------------------------------------------------------------- */

int sys_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC) < 0 ? -errno : 0;
}

int sys_accept(int fd)
{
	int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	return peer < 0 ? -errno : peer;
}

uint64_t sys_boot_ms(void)
{
	return clock_ns(CLOCK_BOOTTIME) / 1000000;
}

static void read_boot_id(char *ret, size_t size)
{
	AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

/* Read once: a process that has no descriptor left later knows it all the same. */
void sys_boot_id(char *ret, size_t size)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char known[64];
	LOCKED(&lock);

	if (!known[0])
		read_boot_id(known, sizeof(known));
	snprintf(ret, size, "%s", known);
}

#define CONNECT_S 60 /* that a server may take to accept */

/* A socket and the short name by which the kernel finds `name` in the directory. */
static int socket_at(int dirfd, const char *name, struct sockaddr_un *ret)
{
	int fd, n;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dirfd, name);
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* By its whole path, if that is short enough, so that the list of sockets shows where it is. */
static void name_plainly(int dirfd, const char *name, struct sockaddr_un *at)
{
	char link[32], path[sizeof(at->sun_path)];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	n = readlink(link, path, sizeof(path));
	if (n > 0 && path[0] == '/' && (size_t)n + 1 + strlen(name) < sizeof(at->sun_path))
		snprintf(at->sun_path, sizeof(at->sun_path), "%.*s/%s", (int)n, path, name);
}

int sys_listen_at(int dirfd, const char *name, int backlog)
{
	struct sockaddr_un at;
	AUTO_CLOSE int fd = socket_at(dirfd, name, &at);

	if (fd < 0)
		return fd;
	name_plainly(dirfd, name, &at);
	/* The mode counts from before there is a name: Linux takes it from the socket. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    fchmodat(dirfd, name, 0600, 0) < 0 || listen(fd, backlog) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int sys_connect_at(int dirfd, const char *name)
{
	const struct timeval most = { .tv_sec = CONNECT_S }, never = { 0 };
	struct sockaddr_un at;
	AUTO_CLOSE int fd = socket_at(dirfd, name, &at);

	if (fd < 0)
		return fd;
	/* One that accepts nobody must not be waited for without end. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	while (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		if (errno != EINTR)
			return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof(never));
	return TAKE_FD(fd);
}

const char *sys_self_path(char *path, size_t size)
{
	static const char self[] = "/proc/self/exe";

	return access(self, X_OK) == 0 ? self : NULL;
}

void sys_close_from(int lowest)
{
	if (close_range((unsigned)lowest, ~0u, 0) == 0)
		return;
	for (int fd = lowest, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
		close(fd);
}

void sys_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int sys_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	return -pthread_cond_timedwait(cond, lock, until);
}

int sys_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += (time_t)(ms / 1000) + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sys_cond_wait_until(cond, lock, &until);
}

void sys_read_ahead(int fd, off_t len)
{
	IGNORE_RESULT(posix_fadvise(fd, 0, len, POSIX_FADV_WILLNEED),
		      "then it is read when it is wanted");
}

unsigned sys_processors(void)
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	return n > 0 ? (unsigned)n : 1;
}

int sys_load_open(void)
{
	return open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

unsigned sys_runnable(int load_fd)
{
	char text[64];
	ssize_t n;
	unsigned running;

	n = pread(load_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%*s %*s %*s %u/", &running) == 1 ? running : 0;
}

void sys_gather_memory(void)
{
	mallopt(M_ARENA_MAX, 2);
}

void sys_return_memory(void)
{
	malloc_trim(0);
}

uint64_t sys_memory(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_C(1) << 30;
}

uint64_t sys_available_memory(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kib = UINT64_MAX;
	char line[128];

	while (f && fgets(line, sizeof(line), f) &&
	       sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
		continue;
	if (f)
		fclose(f);
	return kib == UINT64_MAX ? kib : kib << 10;
}

/* Blank, tab, newline and backslash stand in mountinfo as three octal digits. */
static void unescape_octal(char *s)
{
	char *to = s;

	while (*s != '\0') {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

int sys_each_mount(sys_mount_fn fn, void *ctx)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	AUTO_FREE char *line = NULL, *path = NULL;
	unsigned major, minor;
	size_t size = 0;
	int r = 0;

	if (!f)
		return -errno;
	while (r == 0 && getline(&line, &size, f) > 0) {
		free(path);
		path = NULL;
		if (sscanf(line, "%*d %*d %u:%u %*s %ms", &major, &minor, &path) != 3)
			continue;
		unescape_octal(path);
		r = fn(path, makedev(major, minor), ctx);
	}
	if (r == 0 && ferror(f))
		r = -EIO;
	fclose(f);
	return r;
}
