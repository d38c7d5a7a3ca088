/* When a mount begins, ends, and is refused. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/mount/stage.h"

#define NOBODY 65534

/* --- beginning and ending --------------------------------------------------------------- */

TEST(a_mount_answers_when_open_returns_and_is_gone_when_close_does)
{
	struct stage s = { 0 };
	struct stat st;

	stage_open(&s, "plain");
	stage_put(&s, "hello", "world");
	CHECK(stage_has(&s, "hello", "world"));
	CHECK(live_has(&s.live, "hello", "world"));
	CHECK(stage_stats(&s).requests > 0);
	CHECK(!mount_ended(s.m));

	stage_unmount(&s, false);
	CHECK_EQ(stat(stage_at(&s, "hello"), &st), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK_EQ(stat(s.path, &st), 0);
	stage_close(&s);
}

TEST(a_layer_can_be_mounted_again_with_what_was_in_it)
{
	struct stage s = { 0 };

	stage_open(&s, "again");
	CHECK_EQ(mkdir(stage_at(&s, "d"), 0755), 0);
	stage_put(&s, "d/f", "kept");
	stage_unmount(&s, false);
	stage_mount(&s, &(struct mount_options){ 0 });
	CHECK(stage_has(&s, "d/f", "kept"));
	stage_close(&s);
}

TEST(a_mount_in_use_is_busy_and_goes_on_as_if_nobody_had_asked)
{
	struct stage s = { 0 };
	struct err err = { 0 };
	int fd;

	stage_open(&s, "busy");
	stage_put(&s, "f", "before");
	fd = open(stage_at(&s, "f"), O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);

	CHECK_EQ(mount_close(s.m, false, &err), -EBUSY);
	CHECK_HAS(err.msg, s.path);
	CHECK(!mount_ended(s.m));
	CHECK_EQ(pwrite(fd, "after!", 6, 0), 6);
	CHECK(stage_has(&s, "f", "after!"));
	stage_put(&s, "new", "made later");

	close(fd);
	stage_close(&s);
}

TEST(a_working_directory_is_use_too)
{
	struct stage s = { 0 };
	struct err err = { 0 };
	AUTO_CLOSE int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	stage_open(&s, "cwd");
	CHECK_EQ(chdir(s.path), 0);
	CHECK_EQ(mount_close(s.m, false, &err), -EBUSY);
	CHECK_EQ(fchdir(here), 0);
	stage_close(&s);
}

TEST(a_forced_close_gives_users_an_error_from_then_on)
{
	struct stage s = { 0 };
	int fd;

	stage_open(&s, "force");
	stage_put(&s, "f", "before");
	fd = open(stage_at(&s, "f"), O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);

	stage_unmount(&s, true);
	CHECK_EQ(pwrite(fd, "x", 1, 0), -1);
	CHECK_EQ(errno, ENOTCONN);
	close(fd);
	CHECK(!stage_there(&s, "f"));
	CHECK(live_has(&s.live, "f", "before"));
	stage_close(&s);
}

TEST(who_unmounts_it_ends_the_mount)
{
	struct stage s = { 0 };

	stage_open(&s, "ended");
	stage_put(&s, "f", "x");
	CHECK(!mount_ended(s.m));
	if (umount2(s.path, 0) < 0) {
		stage_close(&s);
		TEST_SKIP("only root may unmount it by hand");
	}
	CHECK(stage_wait(stage_ended, &s));
	stage_close(&s);
}

TEST(closing_leaves_alone_what_a_stranger_mounted_in_its_place)
{
	struct stage s = { 0 };
	struct statfs fs;

	stage_open(&s, "stranger");
	if (umount2(s.path, 0) < 0 || mount("none", s.path, "tmpfs", 0, NULL) < 0) {
		stage_close(&s);
		TEST_SKIP("only root may mount a tmpfs");
	}
	CHECK(stage_wait(stage_ended, &s));
	stage_close(&s);

	CHECK_EQ(statfs(s.path, &fs), 0);
	CHECK_EQ(fs.f_type, 0x01021994); /* TMPFS_MAGIC */
	CHECK_EQ(umount2(s.path, 0), 0);
}

TEST(a_place_that_is_no_directory_is_refused_with_a_sentence)
{
	struct stage s = { 0 };
	struct mount *m = NULL;
	struct err err = { 0 };
	const struct mount_options o = { .path = test_path("not-there"), .source = "x" };

	stage_open(&s, "refused");
	CHECK_EQ(mount_open(s.mounts, s.live.l, &o, &m, &err), -ENOENT);
	CHECK_HAS(err.msg, o.path);
	stage_close(&s);
}

TEST(two_mounts_of_a_process_are_strangers_to_each_other)
{
	struct stage a = { 0 }, b = { 0 };

	stage_open(&a, "two-a");
	/* The second is one of the same set. */
	live_open(&b.live, "two-b");
	b.mounts = a.mounts;
	b.path = stage_dir("two-b-mnt");
	stage_mount(&b, &(struct mount_options){ 0 });

	stage_put(&a, "f", "of a");
	stage_put(&b, "f", "of b");
	CHECK(stage_has(&a, "f", "of a"));
	CHECK(stage_has(&b, "f", "of b"));
	stage_unmount(&a, false);
	CHECK(stage_has(&b, "f", "of b"));
	stage_unmount(&b, false);
	live_close(&b.live);
	stage_close(&a);
}

/* --- what a dead process left ----------------------------------------------------------- */

static bool is_dead(const struct stage *s)
{
	struct statfs fs;

	return statfs(s->path, &fs) < 0 && errno == ENOTCONN;
}

/* A process that mounts there, says so, and waits to be killed. */
static pid_t mount_and_wait(const struct stage *s)
{
	struct stage mine = { .path = s->path };
	struct err err = { 0 };
	int ready[2];
	pid_t pid;
	char c;

	CHECK_EQ(pipe(ready), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		const struct mount_options o = { .path = s->path, .source = "dying" };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		live_open(&mine.live, "dying-store");
		if (mounts_new(&mine.mounts, &err) < 0 ||
		    mount_open(mine.mounts, mine.live.l, &o, &mine.m, &err) < 0) {
			c = 'n';
			IGNORE_RESULT(write(ready[1], &c, 1), "the other side sees the end");
			_exit(1);
		}
		c = 'y';
		IGNORE_RESULT(write(ready[1], &c, 1), "the other side sees the end");
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &c, 1), 1);
	close(ready[0]);
	if (c == 'n')
		TEST_SKIP("nothing can be mounted here");
	return pid;
}

TEST(what_a_dead_process_left_gives_an_error_and_can_be_cleared)
{
	struct stage s = { .path = stage_dir("dying") };
	struct err err = { 0 };
	struct stat st;
	pid_t pid;

	CHECK_OK(mount_clear(s.path, &err), &err); /* nothing is there yet */
	pid = mount_and_wait(&s);
	CHECK_EQ(mount_clear(s.path, &err), -EBUSY);
	CHECK_HAS(err.msg, "answers");
	CHECK_EQ(stat(s.path, &st), 0);

	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(stage_wait(is_dead, &s));
	CHECK_OK(mount_clear(s.path, &err), &err);
	CHECK_EQ(stat(s.path, &st), 0);
	CHECK_EQ(rmdir(s.path), 0);
	CHECK_OK(mount_clear(s.path, &err), &err); /* not even the directory is there */
}

TEST(clearing_leaves_other_mounts_alone)
{
	const char *path = stage_dir("other");
	struct err err = { 0 };
	struct statfs fs;

	if (mount("none", path, "tmpfs", 0, NULL) < 0)
		TEST_SKIP("only root may mount a tmpfs");
	CHECK_OK(mount_clear(path, &err), &err);
	CHECK_EQ(statfs(path, &fs), 0);
	CHECK_EQ(fs.f_type, 0x01021994); /* TMPFS_MAGIC */
}

/* --- who may enter ---------------------------------------------------------------------- */

static int try_enter(const struct stage *s)
{
	struct stat st;

	return stat(stage_at(s, "public"), &st) == 0 ? 0 : errno;
}

static int try_read_secret(const struct stage *s)
{
	return open(stage_at(s, "secret"), O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno;
}

static void need_root(void)
{
	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
}

TEST(others_stay_out_unless_they_are_let_in)
{
	struct stage s = { 0 };

	need_root();
	stage_open(&s, "alone");
	stage_put(&s, "public", "x");
	CHECK_EQ(stage_as(NOBODY, try_enter, &s), EACCES);
	stage_close(&s);
}

TEST(others_who_are_let_in_may_do_what_permissions_say)
{
	struct stage s = { 0 };

	need_root();
	stage_open_with(&s, "others", &(struct mount_options){ .others = true });
	stage_put(&s, "public", "x");
	stage_put(&s, "secret", "x");
	CHECK_EQ(chmod(stage_at(&s, "secret"), 0600), 0);
	CHECK_EQ(stage_as(NOBODY, try_enter, &s), 0);
	CHECK_EQ(stage_as(NOBODY, try_read_secret, &s), EACCES);
	CHECK_EQ(stage_as(0, try_read_secret, &s), 0);
	stage_close(&s);
}

static unsigned long flags_of(const struct stage *s)
{
	struct statfs fs;

	CHECK_EQ(statfs(s->path, &fs), 0);
	return (unsigned long)fs.f_flags;
}

TEST(set_id_programs_and_devices_mean_nothing)
{
	const unsigned long both = MS_NOSUID | MS_NODEV;
	struct stage s = { 0 };

	need_root();
	stage_open(&s, "mine");
	CHECK_EQ(flags_of(&s) & both, both);
	stage_unmount(&s, false);
	stage_mount(&s, &(struct mount_options){ .others = true });
	CHECK_EQ(flags_of(&s) & both, both);
	stage_close(&s);
}

/* --- as an ordinary user ---------------------------------------------------------------- */

/* What udev does everywhere, seen by this process only. */
static bool open_the_device_to_all(void)
{
	const char *node = test_path("fuse-device");

	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mknod(node, S_IFCHR | 0666, makedev(10, 229)) == 0 && chmod(node, 0666) == 0 &&
	       mount(node, "/dev/fuse", NULL, MS_BIND, NULL) == 0;
}

/* In a process of its own; leaves it with the answer. */
NORETURN static void user_session(const char *path)
{
	const struct mount_options o = { .path = path, .source = "a,b\\c" };
	const struct layer_call call = { .may_wait = true };
	struct stage s = { .path = path };
	struct stat top = { .st_uid = NOBODY };
	struct err err = { 0 };
	int r, fd;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(10);
	live_open(&s.live, "user/store");
	if (layer_setattr(s.live.l, &call, LAYER_ROOT, &top, LAYER_SET_UID, &top, &err) < 0)
		_exit(17);
	if (mounts_new(&s.mounts, &err) < 0)
		_exit(11);
	r = mount_open(s.mounts, s.live.l, &o, &s.m, &err);
	if (r < 0) {
		fprintf(stderr, "# %s\n", err.msg);
		_exit(r == -ENOTSUP ? 77 : 12);
	}
	stage_put(&s, "f", "by a user");
	if (!stage_has(&s, "f", "by a user") || !(flags_of(&s) & MS_NOSUID))
		_exit(13);
	fd = open(stage_at(&s, "f"), O_RDONLY | O_CLOEXEC);
	if (mount_close(s.m, false, &err) != -EBUSY)
		_exit(14);
	close(fd);
	if (mount_close(s.m, false, &err) < 0) {
		fprintf(stderr, "# %s\n", err.msg);
		_exit(15);
	}
	if (stage_there(&s, "f"))
		_exit(16);
	_exit(0);
}

static int run_user_session(const char *path)
{
	const pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		if (!open_the_device_to_all())
			_exit(78);
		user_session(path);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(an_ordinary_user_mounts_and_unmounts_through_fusermount3)
{
	const char *path, *home = test_path("user");
	int status;

	need_root();
	path = stage_dir("user-mnt");
	CHECK_EQ(chown(path, NOBODY, NOBODY), 0);
	CHECK_EQ(mkdir(home, 0755), 0);
	CHECK_EQ(chown(home, NOBODY, NOBODY), 0);
	status = run_user_session(path);
	if (status == 78)
		TEST_SKIP("no mount namespace, or no device node can be made here");
	if (status == 77)
		TEST_SKIP("fusermount3 does not mount here");
	CHECK_EQ(status, 0);
}

TEST_MAIN("mount")
