#include "tests/mount/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fdio.h"

#define NOBODY_DIR_MODE 0711
#define DIRS_MAX        32
#define GUARD_MS        100000

static char *dirs[DIRS_MAX];
static int n_dirs;
static pid_t owner;

/* Lazily, and several times: a test may have put one upon the other. */
static void unmount_all(void)
{
	if (getpid() != owner)
		return;
	for (int i = 0; i < n_dirs; i++)
		while (umount2(dirs[i], MNT_DETACH) == 0)
			continue;
}

/* Without threads, and without the mounts' descriptors: it forks before there are any. */
NORETURN static void guard(int alive)
{
	struct pollfd fd = { .fd = alive };
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	char *line;

	poll(&fd, 1, GUARD_MS);
	if (fdio_read_file(AT_FDCWD, "/proc/self/mounts", (size_t)16 << 20, &text, NULL) < 0 ||
	    buf_str(&text) == NULL)
		_exit(1);
	/* By the force of which the connection ends, whoever holds it. */
	for (line = strtok((char *)text.data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		char *path = strchr(line, ' ');

		if (path == NULL || strncmp(path + 1, test_dir(), strlen(test_dir())) != 0)
			continue;
		path++;
		path[strcspn(path, " ")] = '\0';
		umount2(path, MNT_FORCE | MNT_DETACH);
	}
	_exit(0);
}

/*
 * A process that waits for its own mount cannot be killed, nor end by a crash of the threads
 * that should answer it: somebody else must end the connection then.
 */
static void start_guard(void)
{
	int fds[2];
	pid_t pid;

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(fds[1]);
		close(STDOUT_FILENO); /* whoever reads the results shall not wait for this one */
		guard(fds[0]);
	}
	close(fds[0]);
	/* The other end stays open until this process is gone. */
}

const char *stage_dir(const char *name)
{
	const char *path = test_path(name);

	if (owner == 0) {
		owner = getpid();
		CHECK_EQ(chmod(test_dir(), NOBODY_DIR_MODE), 0);
		start_guard();
		atexit(unmount_all);
	}
	CHECK(n_dirs < DIRS_MAX);
	CHECK_EQ(mkdir(path, 0755), 0);
	dirs[n_dirs] = strdup(path);
	CHECK(dirs[n_dirs] != NULL);
	return dirs[n_dirs++];
}

void stage_mount(struct stage *s, const struct mount_options *options)
{
	const struct layer_call call = { .may_wait = true };
	struct mount_options o = *options;
	struct stat ours = { .st_uid = geteuid(), .st_gid = getegid() };
	struct err err = { 0 };
	int r;

	CHECK_OK(layer_setattr(s->live.l, &call, LAYER_ROOT, &ours, LAYER_SET_UID | LAYER_SET_GID,
			       &ours, &err),
		 &err);
	o.path = s->path;
	o.source = "stage";
	r = mount_open(s->mounts, s->live.l, &o, &s->m, &err);
	if (r == -ENOTSUP) {
		mounts_free(s->mounts);
		live_close(&s->live);
		TEST_SKIP(err.msg);
	}
	CHECK_OK(r, &err);
}

void stage_open_with(struct stage *s, const char *name, const struct mount_options *options)
{
	char dir[64];
	struct err err = { 0 };

	snprintf(dir, sizeof(dir), "%s-mnt", name);
	s->path = stage_dir(dir);
	live_open(&s->live, name);
	CHECK_OK(mounts_new(&s->mounts, &err), &err);
	stage_mount(s, options);
}

void stage_open(struct stage *s, const char *name)
{
	stage_open_with(s, name, &(struct mount_options){ 0 });
}

void stage_unmount(struct stage *s, bool force)
{
	struct err err = { 0 };

	CHECK_OK(mount_close(s->m, force, &err), &err);
	s->m = NULL;
}

void stage_close(struct stage *s)
{
	if (s->m != NULL)
		stage_unmount(s, false);
	mounts_free(s->mounts);
	live_close(&s->live);
}

const char *stage_at(const struct stage *s, const char *name)
{
	static char paths[8][512];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", s->path, name);
	return path;
}

void stage_put(const struct stage *s, const char *name, const char *text)
{
	const int fd = open(stage_at(s, name), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK_EQ(close(fd), 0);
}

bool stage_has(const struct stage *s, const char *name, const char *text)
{
	AUTO_CLOSE int fd = open(stage_at(s, name), O_RDONLY | O_CLOEXEC);
	char have[256];
	ssize_t n;

	n = fd < 0 ? -1 : read(fd, have, sizeof(have));
	return n == (ssize_t)strlen(text) && memcmp(have, text, (size_t)n) == 0;
}

bool stage_there(const struct stage *s, const char *name)
{
	struct stat st;

	return lstat(stage_at(s, name), &st) == 0;
}

static int not_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

char *stage_names(const struct stage *s, const char *name)
{
	struct dirent **list;
	struct buf out = BUF_INIT;
	int n;

	n = scandir(stage_at(s, name), &list, not_dots, alphasort);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK_EQ(buf_printf(&out, " %s", list[i]->d_name), 0);
		free(list[i]);
	}
	free(list);
	CHECK(buf_str(&out) != NULL);
	return (char *)out.data;
}

struct mount_stats stage_stats(const struct stage *s)
{
	struct mount_stats st;

	mount_stats(s->m, &st);
	return st;
}

int stage_as(uint32_t id, int (*fn)(const struct stage *s), const struct stage *s)
{
	const pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		/* A fork of a process with threads: system calls only. */
		if (setgroups(0, NULL) < 0 || setgid(id) < 0 || setuid(id) < 0)
			_exit(250);
		_exit(fn(s));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

bool stage_wait(bool (*is)(const struct stage *s), const struct stage *s)
{
	const struct timespec nap = { .tv_nsec = 5000000 };

	for (int i = 0; i < 2000 && !is(s); i++)
		nanosleep(&nap, NULL);
	return is(s);
}

bool stage_ended(const struct stage *s)
{
	return mount_ended(s->m);
}
