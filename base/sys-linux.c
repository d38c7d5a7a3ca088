#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define PEER_PIDFD 77 /* SO_PEERPIDFD, which older headers do not have */

void *sys_map_secret(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, len, MADV_DONTFORK) < 0 || madvise(at, len, MADV_DONTDUMP) < 0) {
		munmap(at, len);
		return NULL;
	}
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

int sys_each_name(int fd, sys_name_fn fn, void *ctx)
{
	char names[32 << 10] __attribute__((aligned(8)));
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getdents64(fd, names, sizeof(names))) != 0) {
		if (n < 0)
			return -errno;
		for (ssize_t at = 0; at < n && r == 0;) {
			const struct dirent64 *e = (const void *)(names + at);

			at += e->d_reclen;
			if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
				r = fn(e->d_name, e->d_type, ctx);
		}
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

/* By its whole path, if that is short enough: who looks at the list of sockets can tell where it is. */
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
	struct sockaddr_un at;
	AUTO_CLOSE int fd = socket_at(dirfd, name, &at);

	if (fd < 0)
		return fd;
	while (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		if (errno != EINTR)
			return -errno;
	return TAKE_FD(fd);
}

int sys_peer_uid(int fd, uid_t *ret)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	*ret = peer.uid;
	return 0;
}

static int same_namespace(pid_t pid, const char *which)
{
	char path[64];
	struct stat own, other;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", which);
	if (stat(path, &own) < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
	if (stat(path, &other) < 0)
		return -errno;
	return own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* Names the peer itself even if its pid was reused; kernels before 6.5 lack the option. */
static int peer_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);

	if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

/* Look at the process of the peer.  What was seen was the peer's if it lives still. */
static int look_at_peer(int fd, int (*look)(pid_t pid, const char *path), const char *path)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	AUTO_CLOSE int pidfd = -1;
	struct pollfd alive;
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	/* A number that is none here is one of another namespace. */
	if (peer.pid <= 0)
		return SYS_PEER_ELSEWHERE;
	pidfd = peer_pidfd(fd, peer.pid);
	if (pidfd < 0)
		return pidfd;
	r = look(peer.pid, path);
	alive = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	if (r < 0)
		return r;
	if (poll(&alive, 1, 0) != 0)
		return -ESRCH;
	return r;
}

static int place_of(pid_t pid, const char *unused)
{
	int r = same_namespace(pid, "user");

	(void)unused;
	if (r <= 0)
		return r < 0 ? r : SYS_PEER_ELSEWHERE;
	r = same_namespace(pid, "mnt");
	return r < 0 ? r : r > 0 ? SYS_PEER_HERE : SYS_PEER_BESIDE;
}

int sys_peer_place(int fd)
{
	return look_at_peer(fd, place_of, NULL);
}

/* The same file?  From what the kernel knows: a file system of ours would wait for us. */
static bool is_same_file(int a, int b)
{
	const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
	struct statx x, y;

	return statx(a, "", flags, STATX_INO, &x) == 0 && statx(b, "", flags, STATX_INO, &y) == 0 &&
	       x.stx_ino == y.stx_ino && x.stx_dev_major == y.stx_dev_major &&
	       x.stx_dev_minor == y.stx_dev_minor;
}

/* Go down by one name.  Nothing is looked up in a directory that was not found to be the same. */
static int step_into(int *dir, const char *name)
{
	const int fd = openat(*dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(*dir);
	*dir = fd;
	return 0;
}

static bool is_writable(int fd)
{
	struct statvfs st;

	return fstatvfs(fd, &st) == 0 && (st.f_flag & ST_RDONLY) == 0;
}

static int sees(pid_t pid, const char *path)
{
	AUTO_CLOSE int ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), theirs = -1;
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	theirs = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ours < 0 || theirs < 0)
		return -errno;
	if (!is_same_file(ours, theirs))
		return 0;
	for (path += strspn(path, "/"); *path != '\0'; path += strspn(path, "/")) {
		const size_t n = strcspn(path, "/");

		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		path += n;
		if (step_into(&ours, name) < 0 || step_into(&theirs, name) < 0 ||
		    !is_same_file(ours, theirs))
			return 0;
	}
	return is_writable(theirs) || !is_writable(ours);
}

int sys_peer_sees(int fd, const char *path)
{
	const int place = sys_peer_place(fd);

	if (place < 0 || place == SYS_PEER_ELSEWHERE)
		return place < 0 ? place : 0;
	return look_at_peer(fd, sees, path);
}

const char *sys_self_path(char *path, size_t size)
{
	static const char self[] = "/proc/self/exe";

	(void)path;
	(void)size;
	return access(self, X_OK) == 0 ? self : NULL;
}

void sys_close_from(int lowest)
{
	if (close_range((unsigned)lowest, ~0u, 0) == 0)
		return;
	for (int fd = lowest, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
		close(fd);
}

/* Somebody else's files cannot be seen, and that is the answer too. */
static bool has_open(pid_t pid, const struct stat *wanted)
{
	char path[64];
	struct dirent *e;
	struct stat st;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir)))
		found = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 &&
			st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
	if (dir)
		closedir(dir);
	return found;
}

int sys_signal_holder(pid_t pid, int fd, int sig)
{
	AUTO_CLOSE int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct stat st;

	if (pidfd < 0 || fstat(fd, &st) < 0)
		return -ESRCH;
	/* It lives from here on, or the signal finds nobody. */
	if (!has_open(pid, &st))
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

void sys_wait_process(pid_t pid, int ms)
{
	/* By number: glibc has a name for it since 2.36. */
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		poll(&p, 1, ms);
}

/* What the system tells of a task in a file of that name; terminated. */
static int read_of_task(pid_t id, const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return 0;
}

bool sys_task_is_root(pid_t id)
{
	char text[4096];
	unsigned fsuid = 1;
	const char *p;

	if (read_of_task(id, "status", text, sizeof(text)) < 0)
		return false;
	p = strstr(text, "\nUid:");
	return p && sscanf(p, "\nUid: %*u %*u %*u %u", &fsuid) == 1 && fsuid == 0;
}

int sys_look_at_task(pid_t id, struct sys_task *ret)
{
	unsigned long long user, kernel;
	char text[1024], state;
	const char *p;

	if (read_of_task(id, "stat", text, sizeof(text)) < 0)
		return -ESRCH;
	/* The name may hold anything; behind the last bracket come the state and numbers. */
	p = strrchr(text, ')');
	if (!p || sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user,
			 &kernel) != 3)
		return -ESRCH;
	ret->asleep = state != 'R' && state != 'D';
	ret->cpu_ms = (user + kernel) * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK);
	return 0;
}

/* One line of the table of all processes. */
struct process {
	pid_t id, parent;
	uint64_t memory, cpu_ms;
	bool counted;
};

static int look_at_process(pid_t id, struct process *ret)
{
	const unsigned long long tick = (unsigned long long)sysconf(_SC_CLK_TCK);
	unsigned long long user, kernel, of_children[2], pages;
	char text[1024];
	const char *p;
	int parent;

	if (read_of_task(id, "stat", text, sizeof(text)) < 0)
		return -ESRCH;
	p = strrchr(text, ')');
	if (!p || sscanf(p,
			 ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d "
			 "%*d %*d %*u %*u %llu",
			 &parent, &user, &kernel, &of_children[0], &of_children[1], &pages) != 6)
		return -ESRCH;
	*ret = (struct process){
		.id = id,
		.parent = parent,
		.memory = pages * (uint64_t)sysconf(_SC_PAGESIZE),
		.cpu_ms = (user + kernel + of_children[0] + of_children[1]) * 1000 / tick,
	};
	return 0;
}

/* All there are; the number, or a negative errno. */
static ssize_t list_processes(struct process **ret)
{
	DIR *dir = opendir("/proc");
	struct process *list = NULL;
	struct dirent *e;
	size_t n = 0, cap = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		const int id = atoi(e->d_name);

		if (id <= 0)
			continue;
		if (!VEC_ROOM(list, n, cap))
			break;
		n += look_at_process(id, &list[n]) >= 0;
	}
	closedir(dir);
	*ret = list;
	return (ssize_t)n;
}

int sys_look_at_tree(pid_t id, struct sys_tree *ret)
{
	AUTO_FREE struct process *list = NULL;
	const ssize_t n = list_processes(&list);
	bool more = true;

	*ret = (struct sys_tree){ 0 };
	if (n < 0)
		return (int)n;
	for (ssize_t i = 0; i < n; i++)
		list[i].counted = list[i].id == id;
	/* Parents come in no order before their children: until nobody is added. */
	while (more) {
		more = false;
		for (ssize_t i = 0; i < n; i++)
			for (ssize_t k = 0; !list[i].counted && k < n; k++)
				if (list[k].counted && list[k].id == list[i].parent)
					list[i].counted = more = true;
	}
	for (ssize_t i = 0; i < n; i++) {
		ret->processes += list[i].counted;
		ret->memory += list[i].counted ? list[i].memory : 0;
		ret->cpu_ms += list[i].counted ? list[i].cpu_ms : 0;
	}
	return ret->processes > 0 ? 0 : -ESRCH;
}

void sys_name_process(const char *name)
{
	IGNORE_RESULT(prctl(PR_SET_NAME, name), "a name is for people only");
}

void sys_lower_priority(void)
{
	/* On Linux a thread has a priority of its own. */
	IGNORE_RESULT(setpriority(PRIO_PROCESS, (id_t)gettid(), 10),
		      "then it works at that of others");
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

void sys_read_ahead(int fd, off_t len)
{
	IGNORE_RESULT(posix_fadvise(fd, 0, len, POSIX_FADV_WILLNEED),
		      "then it is read when it is wanted");
}

bool sys_has_sha(void)
{
#ifdef HWCAP_SHA2
	const unsigned long both = HWCAP_SHA1 | HWCAP_SHA2;

	return (getauxval(AT_HWCAP) & both) == both;
#else
	return false;
#endif
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
