#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

/* getentropy() refuses more than this in one call. */
#define ENTROPY_MAX 256

/* Nothing is forked here that a run could look into: there are no runs. */
void *sys_map_secret(size_t len)
{
	return calloc(1, len);
}

void sys_unmap_secret(void *at, size_t len)
{
	if (at)
		sys_wipe(at, len);
	free(at);
}

void sys_wipe(void *at, size_t len)
{
	volatile unsigned char *byte = at;

	while (len-- > 0)
		*byte++ = 0;
}

int sys_random(void *data, size_t len)
{
	unsigned char *p = data;
	size_t n;

	while (len > 0) {
		n = len < ENTROPY_MAX ? len : ENTROPY_MAX;
		if (getentropy(p, n) < 0)
			return -errno;
		p += n;
		len -= n;
	}
	return 0;
}

/*
 * fsync() here leaves the bytes in the drive's cache; only F_FULLFSYNC empties it.
 * Network and some foreign file systems do not know it, and there fsync() is all
 * there is.
 */
int sys_sync_data(int fd)
{
	while (fcntl(fd, F_FULLFSYNC) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != ENOTSUP && errno != ENOTTY && errno != EINVAL)
			return -errno;
		while (fsync(fd) < 0)
			if (errno != EINTR)
				return -errno;
		return 0;
	}
	return 0;
}

const char *sys_errno_text(int errnum, char *text, size_t size)
{
	int rc = strerror_r(errnum, text, size);

	if (rc != 0 && rc != ERANGE)
		snprintf(text, size, "error %d", errnum);
	return text;
}

/* A socket cannot be opened at all: EOPNOTSUPP, which differs from ENOTSUP here. */
/* There is no public way to list by the descriptor itself; a stream takes a copy of it. */
int sys_each_name(int fd, sys_name_fn fn, void *ctx)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), r = 0;
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!stream) {
		r = -errno;
		cleanup_close(&copy);
		return r;
	}
	for (errno = 0; r == 0 && (e = readdir(stream)); errno = 0)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = fn(e->d_name, e->d_type, ctx);
	if (r == 0)
		r = -errno;
	closedir(stream);
	return r;
}

bool sys_dir_times_tell(int fd)
{
	return false;
}

int sys_identify(const char *dir, struct sys_identity *ret)
{
	struct statfs fs;
	struct stat st;

	_Static_assert(sizeof(fs.f_fsid) == sizeof(ret->fs), "eight bytes");
	if (lstat(dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (statfs(dir, &fs) < 0)
		return -errno;
	ret->ino = st.st_ino;
	ret->born = st.st_birthtimespec.tv_sec * 1000000000LL + st.st_birthtimespec.tv_nsec;
	memcpy(&ret->fs, &fs.f_fsid, sizeof(ret->fs));
	return 0;
}

bool sys_is_in_memory(const char *dir)
{
	return false;
}

int sys_open_node(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_EVTONLY | O_SYMLINK | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == EOPNOTSUPP ? -ENOTSUP : -errno;
	return fd;
}

int sys_open_here(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name, flags);

	return fd < 0 ? -errno : fd;
}

int sys_open_place(const char *path, const struct sys_place *place)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW_ANY | O_CLOEXEC), r;
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

int sys_open_below(int dirfd, const char *path, int flags)
{
	return -ENOTSUP;
}

ssize_t sys_list_xattrs(int fd, char *names, size_t size)
{
	ssize_t n = flistxattr(fd, names, size, 0);

	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	return n;
}

ssize_t sys_get_xattr(int fd, const char *name, void *value, size_t size)
{
	ssize_t n = fgetxattr(fd, name, value, size, 0, 0);

	if (n < 0)
		return errno == ENOATTR ? -ENODATA : -errno;
	return n;
}

int sys_set_xattr(int fd, const char *name, const void *value, size_t size)
{
	return fsetxattr(fd, name, value, size, 0, 0) < 0 ? -errno : 0;
}

int sys_remove_xattr(int fd, const char *name)
{
	if (fremovexattr(fd, name, 0) == 0)
		return 0;
	return errno == ENOATTR ? -ENODATA : -errno;
}

int sys_rename_new(int dirfd, const char *name, int new_dirfd, const char *new_name)
{
	return renameatx_np(dirfd, name, new_dirfd, new_name, RENAME_EXCL) < 0 ? -errno : 0;
}

int sys_exchange(int dirfd, const char *name, int other_dirfd, const char *other_name)
{
	return renameatx_np(dirfd, name, other_dirfd, other_name, RENAME_SWAP) < 0 ? -errno : 0;
}

int sys_copy_range(int from, int to, off_t off, off_t len)
{
	return -ENOTSUP;
}

/* sync(2) only begins it; what has to come first on the disk is then waited for. */
int sys_sync_all(int fd)
{
	sync();
	return sys_sync_data(fd);
}

/* --- processes and sockets -------------------------------------------------------------- */

static int close_on_exec(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
}

int sys_pipe(int fds[2])
{
	int r;

	if (pipe(fds) < 0)
		return -errno;
	r = close_on_exec(fds[0]);
	return r < 0 ? r : close_on_exec(fds[1]);
}

int sys_accept(int fd)
{
	int peer = accept(fd, NULL, NULL), r;

	if (peer < 0)
		return -errno;
	r = close_on_exec(peer);
	return r < 0 ? r : peer;
}

uint64_t sys_boot_ms(void)
{
	return clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW) / 1000000;
}

void sys_boot_id(char *ret, size_t size)
{
	size_t len = size - 1;

	ret[0] = '\0';
	if (sysctlbyname("kern.bootsessionuuid", ret, &len, NULL, 0) == 0)
		ret[len] = '\0';
	else
		ret[0] = '\0';
}

/* In the library since macOS 10.12, and in no header of it. */
int pthread_fchdir_np(int fd);

/* There is no name for an open directory here, so this thread goes there for the call. */
static int at_socket(int dirfd, const char *name,
		     int (*fn)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int rc;

	if (fd < 0 || close_on_exec(fd) < 0)
		return -errno;
	if (strlcpy(at.sun_path, name, sizeof(at.sun_path)) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	if (pthread_fchdir_np(dirfd) < 0)
		return -errno;
	rc = fn(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	pthread_fchdir_np(-1);
	return rc < 0 ? rc : TAKE_FD(fd);
}

int sys_listen_at(int dirfd, const char *name, int backlog)
{
	AUTO_CLOSE int fd = at_socket(dirfd, name, bind);

	if (fd < 0)
		return fd;
	if (fchmodat(dirfd, name, 0600, 0) < 0 || listen(fd, backlog) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int sys_connect_at(int dirfd, const char *name)
{
	return at_socket(dirfd, name, connect);
}

const char *sys_self_path(char *path, size_t size)
{
	uint32_t n = (uint32_t)size;

	return _NSGetExecutablePath(path, &n) == 0 ? path : NULL;
}

void sys_close_from(int lowest)
{
	for (int fd = lowest, end = getdtablesize(); fd < end; fd++)
		close(fd);
}

void sys_cond_init(pthread_cond_t *cond)
{
	pthread_cond_init(cond, NULL);
}

/* Conditions here know only the clock that can be set, so we pass the time that is left instead. */
int sys_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	struct timespec left;

	clock_gettime(CLOCK_MONOTONIC, &left);
	left.tv_sec = until->tv_sec - left.tv_sec;
	left.tv_nsec = until->tv_nsec - left.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += 1000000000;
	}
	if (left.tv_sec < 0)
		return -ETIMEDOUT;
	return -pthread_cond_timedwait_relative_np(cond, lock, &left);
}

int sys_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms)
{
	const struct timespec left = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	return -pthread_cond_timedwait_relative_np(cond, lock, &left);
}

void sys_read_ahead(int fd, off_t len)
{
	struct radvisory wanted = { .ra_offset = 0,
				    .ra_count = len > INT_MAX ? INT_MAX : (int)len };

	IGNORE_RESULT(fcntl(fd, F_RDADVISE, &wanted), "then it is read when it is wanted");
}

unsigned sys_processors(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

int sys_load_open(void)
{
	return -1;
}

unsigned sys_runnable(int load_fd)
{
	return 0;
}

void sys_gather_memory(void)
{
}

void sys_return_memory(void)
{
}

uint64_t sys_memory(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_C(1) << 30;
}

uint64_t sys_available_memory(void)
{
	return UINT64_MAX;
}

int sys_each_mount(sys_mount_fn fn, void *ctx)
{
	struct statfs *list;
	int n = getmntinfo(&list, MNT_NOWAIT), r = 0;

	if (n == 0)
		return -errno;
	for (int i = 0; i < n && r == 0; i++)
		r = fn(list[i].f_mntonname, (dev_t)list[i].f_fsid.val[0], ctx);
	return r;
}

/* --- what lacks-darwin.h says of the C library ------------------------------------------ */

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}
