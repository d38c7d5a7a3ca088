/*
 * A mount shown under other user ids, as a sandbox of root's needs it: what is root's in the clone
 * is the sandbox's root's inside, and what that makes is root's in the clone.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fdio.h"
#include "tests/mount/stage.h"

#define INSIDE_ROOT 524288

static const struct mount_options for_others = { .source = "stage", .others = true };

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif

/* A process that does nothing in a user namespace of its own. */
static pid_t start_inside(int *ret_ns)
{
	int ready[2];
	char path[64], byte;
	pid_t pid;

	CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		byte = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	if (byte != 'y')
		TEST_SKIP("there are no user namespaces here");
	for (int i = 0; i < 2; i++) {
		AUTO_CLOSE int fd = -1;
		char map[64];

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid,
			 i == 0 ? "uid_map" : "gid_map");
		fd = open(path, O_WRONLY | O_CLOEXEC);
		snprintf(map, sizeof(map), "0 %d 65536\n", INSIDE_ROOT);
		CHECK(fd >= 0);
		CHECK_EQ(fdio_write(fd, map, strlen(map)), 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	*ret_ns = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(*ret_ns >= 0);
	return pid;
}

/* The mount at `path` once more, ids mapped as in the namespace; a negative errno if that cannot be. */
static int open_mapped(const char *path, int ns)
{
	struct {
		uint64_t attr_set, attr_clr, propagation, userns_fd;
	} attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns };
	int fd = (int)syscall(SYS_open_tree, AT_FDCWD, path, 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);

	CHECK(fd >= 0);
	if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return fd;
	close(fd);
	return -errno;
}

static NORETURN void as_ordinary(int fd)
{
	struct stat st;
	int file;

	if (setgid(INSIDE_ROOT) < 0 || setuid(INSIDE_ROOT) < 0)
		_exit(1);
	if (fstatat(fd, "old", &st, 0) < 0 || st.st_uid != INSIDE_ROOT)
		_exit(2);
	file = openat(fd, "old", O_WRONLY | O_CLOEXEC);
	if (file < 0 || write(file, "NEW", 3) != 3)
		_exit(3);
	file = openat(fd, "made", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0 || write(file, "x", 1) != 1)
		_exit(4);
	if (mkdirat(fd, "dir", 0700) < 0 || symlinkat("x", fd, "link") < 0)
		_exit(5);
	_exit(0);
}

TEST(a_mount_of_roots_can_be_shown_under_other_ids)
{
	struct stage s = { 0 };
	struct stat st;
	pid_t holder, pid;
	int ns, fd, status;

	if (geteuid() != 0)
		TEST_SKIP("only root may map ids");
	stage_open_with(&s, "mapped", &for_others);
	stage_put(&s, "old", "was");
	CHECK_EQ(chmod(stage_at(&s, "old"), 0600), 0);
	holder = start_inside(&ns);
	fd = open_mapped(s.path, ns);
	if (fd >= 0) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			as_ordinary(fd);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		for (size_t i = 0; i < 4; i++) {
			const char *const names[] = { "old", "made", "dir", "link" };

			CHECK_EQ(lstat(stage_at(&s, names[i]), &st), 0);
			CHECK_EQ(st.st_uid, 0);
			CHECK_EQ(st.st_gid, 0);
		}
		CHECK(stage_has(&s, "old", "NEW"));
		close(fd);
	}
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	close(ns);
	stage_close(&s);
	if (fd < 0)
		TEST_SKIP("this kernel maps no ids of FUSE mounts (Linux 6.12 does)");
}

/* Where ids are mapped the kernel does not say who asks; what only root may see it sees. */
TEST(root_is_known_where_ids_could_be_mapped)
{
	struct stage s = { 0 };
	char list[256];

	if (geteuid() != 0)
		TEST_SKIP("only root may set a trusted attribute");
	stage_open_with(&s, "trusted", &for_others);
	stage_put(&s, "f", "x");
	CHECK_EQ(setxattr(stage_at(&s, "f"), "trusted.t", "1", 1, 0), 0);
	CHECK_EQ(listxattr(stage_at(&s, "f"), list, sizeof(list)), (ssize_t)sizeof("trusted.t"));
	CHECK_EQ(seteuid(INSIDE_ROOT), 0);
	CHECK_EQ(listxattr(stage_at(&s, "f"), list, sizeof(list)), 0);
	CHECK_EQ(seteuid(0), 0);
	stage_close(&s);
}

TEST_MAIN("idmap")
