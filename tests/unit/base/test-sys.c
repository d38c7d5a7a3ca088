#include "tests/lib/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sys.h"

TEST(random_bytes_fill_all_of_it_and_differ_each_time)
{
	static unsigned char a[5000], b[5000];
	static const unsigned char zero[16];
	size_t i;

	CHECK_EQ(sys_random(a, sizeof(a)), 0);
	CHECK_EQ(sys_random(b, sizeof(b)), 0);
	CHECK(memcmp(a, b, sizeof(a)) != 0);
	for (i = 0; i + sizeof(zero) <= sizeof(a); i += sizeof(zero))
		CHECK(memcmp(a + i, zero, sizeof(zero)) != 0);
	CHECK(memcmp(a + sizeof(a) - 8, zero, 8) != 0);
	CHECK_EQ(sys_random(a, 0), 0);
}

TEST(a_file_can_be_synced_and_a_bad_descriptor_is_an_error)
{
	AUTO_CLOSE int fd = open(test_path("f"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ(sys_sync_data(fd), 0);
	CHECK_EQ(sys_sync_data(-1), -EBADF);
}

TEST(every_errno_has_a_text_even_an_unknown_one)
{
	char text[128];

	CHECK_STR(sys_errno_text(ENOENT, text, sizeof(text)), "No such file or directory");
	CHECK_HAS(sys_errno_text(54321, text, sizeof(text)), "54321");
}

TEST(file_times_have_one_name)
{
	struct stat st;

	CHECK_EQ(stat(test_dir(), &st), 0);
	CHECK_EQ(SYS_ST_MTIM(&st).tv_sec, st.st_mtime);
	CHECK_EQ(SYS_ST_CTIM(&st).tv_sec, st.st_ctime);
}

static int count_name(const char *name, unsigned char type, void *ctx)
{
	unsigned *seen = ctx;

	CHECK(type == DT_DIR || type == DT_UNKNOWN);
	CHECK_EQ(name[0], 'd');
	seen[atoi(name + 1)]++;
	return atoi(name + 1) == 3000 ? 7 : 0;
}

TEST(each_name_of_a_directory_is_listed_once)
{
	AUTO_CLOSE int fd = -1, again = -1;
	static unsigned seen[3001];
	char name[16];

	CHECK_EQ(mkdir(test_path("many"), 0755), 0);
	fd = open(test_path("many"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		CHECK_EQ(mkdirat(fd, name, 0755), 0);
	}
	CHECK_EQ(sys_each_name(fd, count_name, seen), 0);
	for (int i = 0; i < 3000; i++)
		CHECK_EQ(seen[i], 1);
	CHECK_EQ(mkdirat(fd, "d3000", 0755), 0);
	again = open(test_path("many"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_EQ(sys_each_name(again, count_name, seen), 7);
	CHECK_EQ(sys_each_name(-1, count_name, seen), -EBADF);
}

TEST(a_node_can_be_held_without_opening_or_following_it)
{
	AUTO_CLOSE int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int link = -1, fifo = -1;
	struct stat st;

	CHECK_EQ(symlinkat("nowhere", dir, "link"), 0);
	CHECK_EQ(mkfifoat(dir, "fifo", 0600), 0);
	link = sys_open_node(dir, "link");
	CHECK(link >= 0);
	CHECK_EQ(fstat(link, &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	fifo = sys_open_node(dir, "fifo");
	CHECK(fifo >= 0);
	CHECK_EQ(fstat(fifo, &st), 0);
	CHECK(S_ISFIFO(st.st_mode));
	CHECK_EQ(sys_list_xattrs(fifo, NULL, 0), 0);
	CHECK_EQ(sys_open_node(dir, "absent"), -ENOENT);
}

TEST(a_path_is_opened_only_if_it_stays_below_and_follows_no_symlink)
{
	AUTO_CLOSE int top = -1, fd = -1;

	CHECK_EQ(mkdir(test_path("below"), 0700), 0);
	CHECK_EQ(mkdir(test_path("below/a"), 0700), 0);
	CHECK_EQ(mkdir(test_path("below/a/b"), 0700), 0);
	CHECK_EQ(symlink("a", test_path("below/link")), 0);
	top = open(test_path("below"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(top >= 0);
	fd = sys_open_below(top, "a/b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -ENOTSUP)
		TEST_SKIP("no such call here");
	CHECK(fd >= 0);
	CHECK_EQ(sys_open_below(top, "link/b", O_RDONLY | O_CLOEXEC), -ELOOP);
	CHECK_EQ(sys_open_below(top, "a/b/../../..", O_RDONLY | O_CLOEXEC), -EXDEV);
	CHECK_EQ(sys_open_below(top, "/", O_RDONLY | O_CLOEXEC), -EXDEV);
	CHECK_EQ(sys_open_below(top, "a/c", O_RDONLY | O_CLOEXEC), -ENOENT);
}

TEST(extended_attributes_are_read_through_any_descriptor)
{
	AUTO_CLOSE int fd = open(test_path("attributes"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	AUTO_CLOSE int node = sys_open_node(AT_FDCWD, test_path("attributes"));
	char names[64], value[8];

	CHECK(fd >= 0 && node >= 0);
	CHECK_EQ(sys_list_xattrs(fd, NULL, 0), 0);
	if (fsetxattr(fd, "user.a", "12345", 5, 0) < 0)
		TEST_SKIP("this file system has no extended attributes");
	for (int i = 0; i < 2; i++) {
		const int by = i == 0 ? fd : node;

		CHECK_EQ(sys_list_xattrs(by, NULL, 0), 7);
		CHECK_EQ(sys_list_xattrs(by, names, 3), -ERANGE);
		CHECK_EQ(sys_list_xattrs(by, names, sizeof(names)), 7);
		CHECK_STR(names, "user.a");
		CHECK_EQ(sys_get_xattr(by, "user.a", NULL, 0), 5);
		CHECK_EQ(sys_get_xattr(by, "user.a", value, 3), -ERANGE);
		CHECK_EQ(sys_get_xattr(by, "user.a", value, sizeof(value)), 5);
		CHECK_MEM(value, 5, "12345", 5);
		CHECK_EQ(sys_get_xattr(by, "user.b", value, sizeof(value)), -ENODATA);
	}
}

/* --- processes and sockets -------------------------------------------------------------- */

TEST(a_socket_is_found_by_its_name_in_a_directory_however_long_the_path)
{
	char path[256];
	AUTO_CLOSE int dir = -1, server = -1, client = -1, peer = -1;
	struct stat st;
	uid_t uid;
	char byte;

	/* sockaddr_un holds 108 bytes. */
	memset(path, 'x', sizeof(path));
	path[200] = '\0';
	CHECK_EQ(mkdir(test_path(path), 0700), 0);
	dir = open(test_path(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0);
	CHECK_EQ(sys_connect_at(dir, "socket"), -ENOENT);
	server = sys_listen_at(dir, "socket", 4);
	CHECK(server >= 0);
	CHECK_EQ(fstatat(dir, "socket", &st, 0), 0);
	CHECK(S_ISSOCK(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, 0600);
	client = sys_connect_at(dir, "socket");
	peer = sys_accept(server);
	CHECK(client >= 0 && peer >= 0);
	CHECK_EQ(write(client, "x", 1), 1);
	CHECK_EQ(read(peer, &byte, 1), 1);
	CHECK_EQ(sys_peer_uid(peer, &uid), 0);
	CHECK_EQ(uid, geteuid());
	CHECK_EQ(sys_listen_at(dir, "socket", 4), -EADDRINUSE);
	for (const int *fd = (int[]){ server, client, peer, -1 }; *fd >= 0; fd++)
		CHECK(fcntl(*fd, F_GETFD) & FD_CLOEXEC);
	close(TAKE_FD(server));
	CHECK_EQ(sys_connect_at(dir, "socket"), -ECONNREFUSED);
}

#if defined(__linux__)
static void send_two(int to, int fd)
{
	const int both[] = { fd, fd };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(both))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(both)) } };
	struct iovec iov = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	const struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};

	memcpy(CMSG_DATA(&control.header), both, sizeof(both));
	CHECK_EQ(sendmsg(to, &msg, 0), 1);
}

TEST(of_several_descriptors_one_is_taken_and_none_is_left_open)
{
	int ends[2], given = -1, first;
	char byte;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	CHECK_EQ(sys_send_with(ends[0], "x", 1, 0, -1), 1);
	CHECK_EQ(sys_receive_with(ends[1], &byte, 1, &given), 1);
	CHECK_EQ(given, -1);
	CHECK_EQ(sys_send_with(ends[0], "x", 1, 0, ends[0]), 1);
	CHECK_EQ(sys_receive_with(ends[1], &byte, 1, &given), 1);
	CHECK(given > ends[1] && fcntl(given, F_GETFD) & FD_CLOEXEC);
	first = given;
	/* The one from before is closed, when it is replaced. */
	send_two(ends[0], ends[0]);
	CHECK_EQ(sys_receive_with(ends[1], &byte, 1, &given), 1);
	CHECK(given > ends[1]);
	for (int fd = first; fd < first + 8; fd++)
		CHECK_EQ(fcntl(fd, F_GETFD) >= 0, fd == given);
	close(given);
	close(ends[0]);
	close(ends[1]);
}
#endif

static int count_mount(const char *path, dev_t dev, void *ctx)
{
	struct stat st;

	if (strcmp(path, "/") == 0 && stat("/", &st) == 0 && st.st_dev == dev)
		++*(int *)ctx;
	return 0;
}

static int stop_at_once(const char *path, dev_t dev, void *ctx)
{
	(void)path;
	(void)dev;
	++*(int *)ctx;
	return 7;
}

TEST(mounts_are_told_with_their_device)
{
	int n = 0;

	CHECK_EQ(sys_each_mount(count_mount, &n), 0);
	CHECK(n >= 1);
	n = 0;
	CHECK_EQ(sys_each_mount(stop_at_once, &n), 7);
	CHECK_EQ(n, 1);
}

TEST(the_program_finds_its_own_file)
{
	char path[4096];
	const char *self = sys_self_path(path, sizeof(path));

	CHECK(self && access(self, X_OK) == 0);
}

TEST(a_process_that_was_waited_for_holds_nothing_any_more)
{
	int held[2], leave[2];
	pid_t pid;
	char byte;

	CHECK_EQ(sys_pipe(held), 0);
	CHECK_EQ(sys_pipe(leave), 0);
	pid = fork();
	if (pid == 0) {
		close(leave[1]);
		IGNORE_RESULT(read(leave[0], &byte, 1), "that it ends is all it says");
		_exit(0);
	}
	close(held[1]);
	CHECK_EQ(fcntl(held[0], F_SETFL, O_NONBLOCK), 0);
	sys_wait_process(pid, 1);
	CHECK(read(held[0], &byte, 1) < 0 && errno == EAGAIN);
	close(leave[1]);
	sys_wait_process(pid, 60000);
	CHECK_EQ(read(held[0], &byte, 1), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	sys_wait_process(pid, 60000);
	close(held[0]);
	close(leave[0]);
}

/* By a clock that can be set, that end would have been long ago. */
TEST(a_wait_ends_by_the_clock_that_nobody_sets)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct timespec until, now;
	pthread_cond_t cond;
	int r;

	sys_cond_init(&cond);
	pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	CHECK_EQ(sys_cond_wait_until(&cond, &lock, &until), -ETIMEDOUT);
	until.tv_sec++;
	do {
		r = sys_cond_wait_until(&cond, &lock, &until);
	} while (r == 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK_EQ(r, -ETIMEDOUT);
	CHECK(now.tv_sec > until.tv_sec ||
	      (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
	CHECK_EQ(sys_cond_wait_ms(&cond, &lock, 0), -ETIMEDOUT);
	do {
		r = sys_cond_wait_ms(&cond, &lock, 1001);
	} while (r == 0);
	CHECK_EQ(r, -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &until);
	CHECK(until.tv_sec > now.tv_sec);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&cond);
}

TEST(a_rename_replaces_nothing_and_two_names_change_places)
{
	AUTO_CLOSE int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b, st;

	close(openat(dir, "swap-a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK_EQ(symlinkat("nowhere", dir, "swap-b"), 0);
	CHECK_EQ(fstatat(dir, "swap-a", &a, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_EQ(fstatat(dir, "swap-b", &b, AT_SYMLINK_NOFOLLOW), 0);

	CHECK_EQ(sys_rename_new(dir, "swap-a", dir, "swap-b"), -EEXIST);
	CHECK_EQ(sys_exchange(dir, "swap-a", dir, "swap-b"), 0);
	CHECK_EQ(fstatat(dir, "swap-a", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_EQ(st.st_ino, b.st_ino);
	CHECK_EQ(sys_exchange(dir, "swap-a", dir, "swap-none"), -ENOENT);
	CHECK_EQ(sys_rename_new(dir, "swap-b", dir, "swap-c"), 0);
	CHECK_EQ(fstatat(dir, "swap-c", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_EQ(st.st_ino, a.st_ino);
	CHECK_EQ(sys_sync_all(dir), 0);
	CHECK_EQ(sys_sync_all(-1), -EBADF);
}

TEST(attributes_are_set_and_taken_away_also_of_what_cannot_be_opened)
{
	AUTO_CLOSE int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int file = openat(dir, "marked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	AUTO_CLOSE int node = sys_open_node(dir, "marked");
	char value[8];

	if (sys_set_xattr(file, "user.a", "one", 3) == -ENOTSUP)
		TEST_SKIP("no attributes on this file system");
	CHECK_EQ(sys_set_xattr(node, "user.b", "two", 3), 0);
	CHECK_EQ(sys_get_xattr(node, "user.a", value, sizeof(value)), 3);
	CHECK_EQ(sys_remove_xattr(node, "user.a"), 0);
	CHECK_EQ(sys_remove_xattr(file, "user.a"), -ENODATA);
	CHECK_EQ(sys_get_xattr(file, "user.b", value, sizeof(value)), 3);
}

TEST(a_process_is_counted_with_its_children)
{
	struct sys_tree alone, both;
	pid_t child;

	CHECK_EQ(sys_look_at_tree(getpid(), &alone), 0);
	CHECK(alone.processes >= 1 && alone.memory > 0);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(sys_look_at_tree(getpid(), &both), 0);
	CHECK_EQ(both.processes, alone.processes + 1);
	CHECK(both.memory > alone.memory);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK_EQ(sys_look_at_tree(child, &both), -ESRCH);
}

#if defined(__linux__)
/* A child of a thread that is not the first, which has written and is reaped by its parent. */
static void *write_and_reap(void *ctx)
{
	const pid_t child = fork();

	(void)ctx;
	if (child == 0) {
		static const char data[65536] = "x";
		const int fd = open(test_path("written"), O_WRONLY | O_CREAT, 0600);
		const bool whole = fd >= 0 && write(fd, data, sizeof(data)) == sizeof(data);

		_exit(!whole);
	}
	CHECK(child > 0);
	waitpid(child, NULL, 0);
	return NULL;
}

TEST(what_children_wrote_counts_when_they_are_gone)
{
	struct sys_tree before, after;
	pthread_t thread;

	if (sys_is_in_memory(test_dir()))
		TEST_SKIP("what is written to a tmpfs is not counted");
	CHECK_EQ(sys_look_at_tree(getpid(), &before), 0);
	CHECK_EQ(pthread_create(&thread, NULL, write_and_reap, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(sys_look_at_tree(getpid(), &after), 0);
	CHECK(after.written >= before.written + 65536);
}

/* The beginning of struct sched_attr: size, policy, flags, nice, priority, and the length of a turn. */
static uint64_t length_of_turns(int32_t *ret_nice)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} t = { 0 };

	CHECK_EQ(syscall(SYS_sched_getattr, 0, &t, sizeof(t), 0), 0);
	*ret_nice = t.nice;
	return t.runtime;
}

TEST(a_thread_takes_short_turns_where_the_kernel_has_them)
{
	int32_t nice_before, nice_after;
	const uint64_t before = length_of_turns(&nice_before);

	sys_take_short_turns();
	/* Before Linux 6.12 there is no length of turns. */
	if (before == 0)
		TEST_SKIP("this kernel has turns of one length only");
	CHECK_EQ(length_of_turns(&nice_after), 100000);
	CHECK_EQ(nice_after, nice_before);
}
#endif

TEST_MAIN("sys")
