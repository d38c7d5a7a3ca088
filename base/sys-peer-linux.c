#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys.h"

#define PEER_PIDFD  77 /* SO_PEERPIDFD, which older headers do not have */
#define PEER_GROUPS 59 /* SO_PEERGROUPS, likewise */

int sys_peer_uid(int fd, uid_t *ret)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	*ret = peer.uid;
	return 0;
}

int sys_peer_groups(int fd, gid_t *ret, size_t max)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (max == 0)
		return -ERANGE;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	ret[0] = peer.gid;
	len = (socklen_t)((max - 1) * sizeof(*ret));
	if (getsockopt(fd, SOL_SOCKET, PEER_GROUPS, ret + 1, &len) < 0)
		return -errno;
	return (int)(len / sizeof(*ret)) + 1;
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

	if (r <= 0)
		return r < 0 ? r : SYS_PEER_ELSEWHERE;
	r = same_namespace(pid, "mnt");
	return r < 0 ? r : r > 0 ? SYS_PEER_HERE : SYS_PEER_BESIDE;
}

int sys_peer_place(int fd)
{
	return look_at_peer(fd, place_of, NULL);
}

/*
 * Where everyone may look: /proc/PID/uid_map.  Only a process with all privileges can make a namespace
 * in which all numbers mean what they mean here.
 */
static int maps_all_ids(pid_t pid, const char *unused)
{
	unsigned long inside = 1, outside = 1, count = 0;
	char path[64];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fscanf(f, "%lu %lu %lu", &inside, &outside, &count);
	fclose(f);
	return n == 3 && inside == 0 && outside == 0 && count == 0xffffffffUL;
}

int sys_peer_shares_ids(int fd)
{
	const int place = sys_peer_place(fd);

	if (place >= 0)
		return place != SYS_PEER_ELSEWHERE;
	if (place != -EACCES && place != -EPERM)
		return 0;
	return look_at_peer(fd, maps_all_ids, NULL) == 1;
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

union one_fd {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

ssize_t sys_send_with(int fd, const void *data, size_t len, int flags, int give)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union one_fd control = { 0 };
	ssize_t n;

	if (give >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &give, sizeof(give));
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
	}
	do
		n = sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t sys_receive_with(int fd, void *to, size_t room, int *ret_given)
{
	struct iovec iov = { .iov_base = to, .iov_len = room };
	union one_fd control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	const struct cmsghdr *c;
	ssize_t n;

	/* There is room for one, without what aligns it: the kernel closes the others. */
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int))) {
		cleanup_close(ret_given);
		memcpy(ret_given, CMSG_DATA(c), sizeof(*ret_given));
	}
	return n;
}
