/* A mount that is attached nowhere, and later somewhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"
#include "tests/mount/stage.h"

static void open_nowhere(struct stage *s, const char *name)
{
	const struct mount_options options = { .source = "stage", .others = true };
	struct err err = { 0 };
	char dir[64];
	int r;

	snprintf(dir, sizeof(dir), "%s-mnt", name);
	s->path = stage_dir(dir);
	live_open(&s->live, name);
	live_mkdir(&s->live, "d");
	live_put(&s->live, "d/f", "hello");
	CHECK_OK(mounts_new(&s->mounts, &err), &err);
	r = mount_open(s->mounts, s->live.l, &options, &s->m, &err);
	if (r == -ENOTSUP) {
		stage_close(s);
		TEST_SKIP(err.msg);
	}
	CHECK_OK(r, &err);
}

static int attach(struct stage *s, const char *path, struct err *err)
{
	const struct mount_options options = { .path = path,
					       .source = "stage-nowhere",
					       .others = true };

	return mount_attach(s->m, &options, err);
}

/* How many mounts of this source the system shows, and where with which options. */
static int shown(char *line, size_t size)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *at;
	int n = 0;

	CHECK_OK(fdio_read_file(AT_FDCWD, "/proc/self/mounts", (size_t)16 << 20, &text, NULL),
		 NULL);
	for (at = buf_str(&text); (at = strstr(at, "stage-nowhere ")) != NULL; at++, n++)
		snprintf(line, size, "%.*s", (int)strcspn(at, "\n"), at);
	return n;
}

/* Requests are counted when they are answered already. */
static uint64_t asked_so_far(const struct stage *s)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t before, n = 0;

	do {
		before = n;
		nanosleep(&nap, NULL);
		n = stage_stats(s).requests + stage_stats(s).deferred;
	} while (n != before);
	return n;
}

static bool has(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char have[64];
	const ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof(have));

	return n == (ssize_t)strlen(text) && memcmp(have, text, (size_t)n) == 0;
}

TEST(a_mount_nowhere_answers_who_has_its_descriptor_and_nobody_else_sees_it)
{
	struct stage s = { 0 };
	char line[512];

	open_nowhere(&s, "unseen");
	CHECK(has(mount_fd(s.m), "d/f", "hello"));
	CHECK_EQ(shown(line, sizeof(line)), 0);
	CHECK(!stage_there(&s, "d"));
	stage_close(&s);
}

TEST(who_is_still_in_it_when_it_is_closed_gets_an_error)
{
	struct stage s = { 0 };
	AUTO_CLOSE int top = -1;

	open_nowhere(&s, "closed");
	top = openat(mount_fd(s.m), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(top >= 0);
	stage_close(&s);
	CHECK(!has(top, "d/f", "hello"));
	CHECK_EQ(errno, ENOTCONN);
}

TEST(attached_it_is_a_mount_like_any_other_and_what_was_known_stays_known)
{
	struct stage s = { 0 };
	struct err err = { 0 };
	char line[512];
	uint64_t asked;

	open_nowhere(&s, "attached");
	CHECK(has(mount_fd(s.m), "d/f", "hello"));
	asked = asked_so_far(&s);
	CHECK_OK(attach(&s, s.path, &err), &err);
	CHECK(stage_has(&s, "d/f", "hello"));
	CHECK_EQ(asked_so_far(&s), asked);
	CHECK_EQ(shown(line, sizeof(line)), 1);
	CHECK_HAS(line, s.path);
	CHECK_HAS(line, " fuse.snapcow ");
	CHECK_HAS(line, "nosuid,nodev,noatime");
	CHECK_HAS(line, "default_permissions,allow_other");

	stage_put(&s, "new", "written");
	CHECK(live_has(&s.live, "new", "written"));
	{
		AUTO_CLOSE int user = open(stage_at(&s, "d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		CHECK(user >= 0);
		CHECK_EQ(mount_close(s.m, false, &err), -EBUSY);
		CHECK_HAS(err.msg, s.path);
	}
	stage_close(&s);
	CHECK_EQ(shown(line, sizeof(line)), 0);
}

TEST(where_it_cannot_be_put_it_stays_nowhere)
{
	struct stage s = { 0 };
	struct err err = { 0 };

	open_nowhere(&s, "stays");
	CHECK_EQ(attach(&s, test_path("no-such-directory"), &err), -ENOENT);
	CHECK_HAS(err.msg, "no-such-directory");
	CHECK(has(mount_fd(s.m), "d/f", "hello"));
	CHECK_OK(attach(&s, s.path, &err), &err);
	CHECK(stage_has(&s, "d/f", "hello"));
	stage_close(&s);
}

/* --- read by somebody else -------------------------------------------------------------- */

#define DIRS  12
#define FILES 700 /* in the first of them: more than one request tells */

static void walk(const struct stage *s)
{
	char name[] = "cowfsd-walk", *argv[] = { name, NULL };
	const char *program = getenv("SNAP_UNDER_TEST");
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;

	CHECK_EQ(posix_spawn_file_actions_init(&actions), 0);
	CHECK_EQ(posix_spawn_file_actions_adddup2(&actions, mount_fd(s->m), 3), 0);
	CHECK_EQ(posix_spawn(&pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

/* Look at each name as git and ls do. */
static int look_at_all(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	struct stat st;
	int n = 0;

	CHECK(dir != NULL);
	while ((e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		CHECK_EQ(fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
		n++;
	}
	CHECK_EQ(fstat(dirfd(dir), &st), 0);
	closedir(dir);
	return n;
}

TEST(after_the_walker_the_kernel_knows_all_names_and_attributes)
{
	struct stage s = { 0 };
	struct err err = { 0 };
	char path[64];
	uint64_t asked;

	if (getenv("SNAP_UNDER_TEST") == NULL)
		TEST_SKIP("SNAP_UNDER_TEST does not name the program");
	open_nowhere(&s, "walked");
	for (int i = 0; i < DIRS; i++) {
		snprintf(path, sizeof(path), "d%d", i);
		live_mkdir(&s.live, path);
		for (int k = 0; k < (i == 0 ? FILES : 5); k++) {
			snprintf(path, sizeof(path), "d%d/file%d", i, k);
			live_put(&s.live, path, "x");
		}
	}
	CHECK_EQ(live_try_symlink(&s.live, "/", "d0/out"), 0);
	walk(&s);
	CHECK_OK(attach(&s, s.path, &err), &err);
	asked = asked_so_far(&s);
	CHECK(asked < FILES / 2);
	CHECK_EQ(look_at_all(s.path), DIRS + 1);
	for (int i = 0; i < DIRS; i++) {
		snprintf(path, sizeof(path), "d%d", i);
		CHECK_EQ(look_at_all(stage_at(&s, path)), i == 0 ? FILES + 1 : 5);
	}
	CHECK_EQ(asked_so_far(&s), asked);
	stage_close(&s);
}

TEST_MAIN("nowhere")
