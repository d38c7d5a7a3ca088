#include "tests/lib/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdio.h"
#include "base/path.h"

static void check_exit(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static size_t count_names(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int open_dir(const char *name)
{
	int fd;

	CHECK_EQ(mkdir(test_path(name), 0700), 0);
	fd = open(test_path(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void check_content(int dirfd, const char *name, const char *want)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(fdio_read_file(dirfd, name, 1 << 20, &b, &err), &err);
	CHECK_STR(buf_str(&b), want);
}

TEST(short_reads_through_a_pipe_are_put_together)
{
	char got[16];
	int fd[2], i;
	pid_t pid;

	CHECK_EQ(pipe(fd), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (i = 0; i < 10; i++) {
			if (write(fd[1], &"0123456789"[i], 1) != 1)
				_exit(1);
			usleep(1000);
		}
		_exit(0);
	}
	close(fd[1]);
	CHECK_EQ(fdio_read(fd[0], got, 7), 7);
	CHECK_MEM(got, 7, "0123456", 7);
	CHECK_EQ(fdio_read(fd[0], got, sizeof(got)), 3);
	CHECK_MEM(got, 3, "789", 3);
	CHECK_EQ(fdio_read(fd[0], got, sizeof(got)), 0);
	close(fd[0]);
	check_exit(pid);
}

static volatile sig_atomic_t n_alarms;
static int alarm_pipe[2]; /* gets a byte for each alarm */

static void on_alarm(int sig)
{
	n_alarms++;
	IGNORE_RESULT(write(alarm_pipe[1], "", 1), "there is room for more than come");
}

/* In the other process: take the alarms there were, or wait for one. */
static void await_alarm(void)
{
	char seen[65536];

	IGNORE_RESULT(read(alarm_pipe[0], seen, sizeof(seen)), "the end will do as well");
}

static void await_full(int fd)
{
	int size = fcntl(fd, F_GETPIPE_SZ), n = 0;

	while (ioctl(fd, FIONREAD, &n) == 0 && n < size)
		continue;
}

static void alarms(unsigned every_us)
{
	struct itimerval t = { { 0, every_us }, { 0, every_us } };
	struct sigaction sa = { .sa_handler = on_alarm }; /* no SA_RESTART */

	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &t, NULL), 0);
}

TEST(signals_interrupt_neither_reads_nor_writes)
{
	static char out[1 << 20], in[1 << 20];
	int fd[2];
	pid_t pid;

	memset(out, 'z', sizeof(out));
	CHECK_EQ(pipe2(alarm_pipe, O_CLOEXEC), 0);
	CHECK_EQ(pipe(fd), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(fd[1]);
		await_full(fd[0]); /* the writer blocks */
		close(alarm_pipe[1]);
		await_alarm();
		await_alarm(); /* one that came while it did */
		if (fdio_read(fd[0], in, sizeof(in)) != (ssize_t)sizeof(in))
			_exit(1);
		_exit(memcmp(in, out, sizeof(in)) != 0);
	}
	close(fd[0]);
	n_alarms = 0;
	alarms(2000);
	CHECK_EQ(fdio_write(fd[1], out, sizeof(out)), 0);
	alarms(0);
	close(fd[1]);
	CHECK(n_alarms > 0);
	check_exit(pid);

	CHECK_EQ(pipe(fd), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(alarm_pipe[1]);
		await_alarm();
		await_alarm();
		_exit(write(fd[1], "late", 4) != 4);
	}
	close(fd[1]);
	n_alarms = 0;
	alarms(2000);
	CHECK_EQ(fdio_read(fd[0], in, 4), 4);
	alarms(0);
	close(fd[0]);
	CHECK(n_alarms > 0);
	CHECK_MEM(in, 4, "late", 4);
	check_exit(pid);
}

TEST(a_full_device_is_reported)
{
	AUTO_CLOSE int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		TEST_SKIP("no /dev/full here");
	CHECK_EQ(fdio_write(fd, "x", 1), -ENOSPC);
	CHECK_EQ(fdio_pwrite(fd, "x", 1, 0), -ENOSPC);
	CHECK_EQ(fdio_write(fd, "x", 0), 0);
}

TEST(errors_come_back_as_negative_errno)
{
	char c = 'x';

	CHECK_EQ(fdio_read(-1, &c, 1), -EBADF);
	CHECK_EQ(fdio_pread(-1, &c, 1, 0), -EBADF);
	CHECK_EQ(fdio_write(-1, &c, 1), -EBADF);
	CHECK_EQ(fdio_pwrite(-1, &c, 1, 0), -EBADF);
}

TEST(pread_and_pwrite_leave_the_position_alone)
{
	AUTO_CLOSE int fd = open(test_path("pos"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char got[8];

	CHECK(fd >= 0);
	CHECK_EQ(fdio_write(fd, "0123456789", 10), 0);
	CHECK_EQ(fdio_pwrite(fd, "ab", 2, 4), 0);
	CHECK_EQ(fdio_pread(fd, got, 4, 3), 4);
	CHECK_MEM(got, 4, "3ab6", 4);
	CHECK_EQ(fdio_pread(fd, got, 8, 7), 3);
	CHECK_EQ(fdio_pread(fd, got, 8, 10), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
}

TEST(a_whole_file_is_appended_whatever_its_size)
{
	static const size_t sizes[] = { 0, 1, 16383, 16384, 16385, 100000 };
	static char text[100000];
	AUTO_CLOSE int dir = open_dir("whole");
	struct err err = { 0 };
	size_t i;

	memset(text, 'q', sizeof(text));
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		CLEANUP(buf_done) struct buf b = BUF_INIT;

		CHECK_OK(fdio_replace_file(dir, "f", text, sizes[i], 0600, &err), &err);
		CHECK_EQ(buf_append_str(&b, ">"), 0);
		CHECK_OK(fdio_read_file(dir, "f", sizes[i], &b, &err), &err);
		CHECK_EQ(b.data[0], '>');
		CHECK_MEM(b.data + 1, b.len - 1, text, sizes[i]);
	}
}

TEST(a_file_whose_size_reads_zero_is_read_to_its_end)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	struct err err = { 0 };

	if (access("/proc/self/status", R_OK) < 0)
		TEST_SKIP("no /proc here");
	CHECK_OK(fdio_read_file(AT_FDCWD, "/proc/self/status", SIZE_MAX, &b, &err), &err);
	CHECK(b.len > 100);
}

TEST(a_file_over_the_limit_is_refused_and_out_stays_as_it_was)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	AUTO_CLOSE int dir = open_dir("limit");
	struct err err = { 0 };

	CHECK_OK(fdio_replace_file(dir, "f", "12345", 5, 0600, &err), &err);
	CHECK_EQ(buf_append_str(&b, "kept"), 0);
	CHECK_EQ(fdio_read_file(dir, "f", 4, &b, &err), -EFBIG);
	CHECK_STR(err.msg, "'f' is larger than 4 bytes");
	CHECK_EQ(fdio_read_file(dir, "f", 0, &b, &err), -EFBIG);
	CHECK_STR(buf_str(&b), "kept");
	CHECK_OK(fdio_read_file(dir, "f", 5, &b, &err), &err);
	CHECK_STR(buf_str(&b), "kept12345");
}

TEST(a_file_that_cannot_be_read_is_named)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;
	AUTO_CLOSE int dir = open_dir("unreadable");
	struct err err = { 0 };

	CHECK_EQ(fdio_read_file(dir, "none", 9, &b, &err), -ENOENT);
	CHECK_STR(err.msg, "opening 'none': No such file or directory");
	CHECK_EQ(fdio_read_file(dir, ".", 9, &b, &err), -EISDIR);
	CHECK_STR(err.msg, "reading '.': Is a directory");
	CHECK_EQ(b.len, 0);
}

TEST(replace_makes_and_replaces_and_leaves_nothing_beside)
{
	AUTO_CLOSE int dir = open_dir("replace");
	struct err err = { 0 };
	struct stat st;
	mode_t old = umask(027);

	CHECK_OK(fdio_replace_file(dir, "f", "one", 3, 0666, &err), &err);
	umask(old);
	check_content(dir, "f", "one");
	CHECK_EQ(fstatat(dir, "f", &st, 0), 0);
	CHECK_EQ(st.st_mode & 07777, 0640);

	CHECK_OK(fdio_replace_file(dir, "f", "second", 6, 0600, &err), &err);
	check_content(dir, "f", "second");
	CHECK_EQ(fstatat(dir, "f", &st, 0), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(count_names(test_path("replace")), 1);
}

TEST(replace_works_below_the_directory_and_from_anywhere)
{
	AUTO_CLOSE int dir = open_dir("deep");
	struct err err = { 0 };
	char longest[PATH_NAME_MAX + 1];

	CHECK_EQ(mkdirat(dir, "sub", 0700), 0);
	CHECK_OK(fdio_replace_file(dir, "sub/f", "x", 1, 0600, &err), &err);
	check_content(dir, "sub/f", "x");
	CHECK_OK(fdio_replace_file(AT_FDCWD, test_path("deep/g"), "y", 1, 0600, &err), &err);
	check_content(dir, "g", "y");

	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK_OK(fdio_replace_file(dir, longest, "z", 1, 0600, &err), &err);
	check_content(dir, longest, "z");
}

TEST(replace_swaps_a_symlink_and_does_not_follow_it)
{
	AUTO_CLOSE int dir = open_dir("link");
	struct err err = { 0 };
	struct stat st;

	CHECK_OK(fdio_replace_file(dir, "target", "safe", 4, 0600, &err), &err);
	CHECK_EQ(symlinkat("target", dir, "f"), 0);
	CHECK_OK(fdio_replace_file(dir, "f", "new", 3, 0600, &err), &err);
	check_content(dir, "target", "safe");
	CHECK_EQ(fstatat(dir, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(S_ISREG(st.st_mode));
}

TEST(a_failed_write_keeps_the_old_file_and_leaves_nothing_beside)
{
	AUTO_CLOSE int dir = open_dir("failed-write");
	struct err err = { 0 };
	pid_t pid;

	CHECK_OK(fdio_replace_file(dir, "f", "old", 3, 0600, &err), &err);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		static const char big[9000];
		struct rlimit limit = { 4096, 4096 };

		signal(SIGXFSZ, SIG_IGN);
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
		CHECK_EQ(fdio_replace_file(dir, "f", big, sizeof(big), 0600, &err), -EFBIG);
		CHECK_STR(err.msg, "writing 'f': File too large");
		_exit(0);
	}
	check_exit(pid);
	check_content(dir, "f", "old");
	CHECK_EQ(count_names(test_path("failed-write")), 1);
}

TEST(a_failed_rename_leaves_nothing_beside)
{
	AUTO_CLOSE int dir = open_dir("failed-rename");
	struct err err = { 0 };

	CHECK_EQ(mkdirat(dir, "d", 0700), 0);
	CHECK_EQ(fdio_replace_file(dir, "d", "x", 1, 0600, &err), -EISDIR);
	CHECK_STR(err.msg, "replacing 'd': Is a directory");
	CHECK_EQ(count_names(test_path("failed-rename")), 1);
}

TEST(a_name_that_cannot_be_a_file_is_refused)
{
	AUTO_CLOSE int dir = open_dir("names");
	static const char *const bad[] = { "", ".", "..", "a/", "/" };
	struct err err = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(fdio_replace_file(dir, bad[i], "x", 1, 0600, &err), -EINVAL);
	CHECK_STR(err.msg, "'/' does not name a file");
	CHECK_EQ(fdio_replace_file(dir, "none/f", "x", 1, 0600, &err), -ENOENT);
	CHECK_STR(err.msg, "opening the directory of 'none/f': No such file or directory");
	CHECK_EQ(count_names(test_path("names")), 0);
}

TEST(a_file_is_swapped_in_one_step_too)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT;
	struct err err = { 0 };
	struct stat st;

	CHECK_OK(fdio_swap_file(AT_FDCWD, test_path("swapped"), "old", 3, 0600, &err), &err);
	CHECK_OK(fdio_swap_file(AT_FDCWD, test_path("swapped"), "new!", 4, 0600, &err), &err);
	CHECK_OK(fdio_read_file(AT_FDCWD, test_path("swapped"), 100, &got, &err), &err);
	CHECK_MEM(got.data, got.len, "new!", 4);
	CHECK_EQ(stat(test_path("swapped"), &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0600);
	CHECK_EQ(fdio_swap_file(AT_FDCWD, test_path("no/such"), "x", 1, 0600, &err), -ENOENT);
	CHECK_HAS(err.msg, "no/such");
}

TEST(a_nameless_file_leaves_nothing_in_its_directory)
{
	struct err err = { 0 };
	char got[4];
	int fd;

	close(open_dir("nameless"));
	fd = fdio_open_nameless(test_path("nameless"), &err);
	CHECK(fd >= 0);
	CHECK_EQ(count_names(test_path("nameless")), 0);
	CHECK_EQ(fdio_write(fd, "kept", 4), 0);
	CHECK_EQ(fdio_pread(fd, got, 4, 0), 4);
	CHECK_MEM(got, sizeof(got), "kept", 4);
	close(fd);
	CHECK_EQ(fdio_open_nameless(test_path("missing"), &err), -ENOENT);
	CHECK_HAS(err.msg, "missing");
}

TEST_MAIN("fdio")
