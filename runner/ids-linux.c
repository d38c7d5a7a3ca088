/*
 * ids-linux.c - the ids of a run that is root of a whole root file system.
 *
 * Its user 0 is the caller, or, for real root, an id that owns nothing.  Every other id comes from the
 * caller's range in /etc/subuid and /etc/subgid; only newuidmap(1) and newgidmap(1), which check
 * that range, may map it.  A caller without a range has user 0 and no other.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "runner/sandbox-i.h"
#include "runner/subid.h"

#define FILE_MAX  (1 << 20)
#define IDS_MOST  65535 /* beside user 0 */
#define ARGS_MAX  (2 + 3 * (SUBID_RANGES_MAX + 1) + 1)
#define TEXT_SIZE 16

extern char **environ;

/* Where distributions put the set-id helpers; not PATH, which a caller may have turned around. */
static const char *const folders[] = { "/usr/bin", "/usr/local/bin", "/bin", "/run/wrappers/bin" };

static const char *find_helper(const char *name, char *path, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, size, "%s/%s", folders[i], name);
		if (access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

static void read_ranges(const char *path, struct subid *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const struct passwd *pw = getpwuid(geteuid());

	*ret = (struct subid){ 0 };
	if (fdio_read_file(AT_FDCWD, path, FILE_MAX, &text, NULL) >= 0)
		subid_read(buf_str(&text), pw ? pw->pw_name : NULL, geteuid(), IDS_MOST, ret);
}

/* Does a map of /proc/self have all ids of a run by root? */
static bool map_covers(const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	const char *line;

	if (fdio_read_file(AT_FDCWD, path, 65536, &text, NULL) < 0)
		return false;
	for (line = buf_str(&text); line && *line; line = strchr(line, '\n')) {
		unsigned long long first, outside, count;

		line += *line == '\n';
		if (sscanf(line, "%llu %llu %llu", &first, &outside, &count) == 3 &&
		    first <= ID_BASE && ID_BASE + ID_COUNT <= first + count)
			return true;
	}
	return false;
}

bool ids_are_all_mapped(void)
{
	return geteuid() == 0 && map_covers("/proc/self/uid_map") &&
	       map_covers("/proc/self/gid_map");
}

enum sandbox_ids sandbox_root_ids(struct err *why)
{
	struct subid uids, gids;
	char path[64];

	if (ids_are_all_mapped())
		return SANDBOX_IDS_ALL;
	read_ranges("/etc/subuid", &uids);
	read_ranges("/etc/subgid", &gids);
	if (uids.n == 0 || gids.n == 0) {
		err_set(why, -ENOENT, "%s has no range of ids for user %u",
			uids.n == 0 ? "/etc/subuid" : "/etc/subgid", (unsigned int)geteuid());
		return SANDBOX_IDS_ONE;
	}
	if (!find_helper("newuidmap", path, sizeof(path)) ||
	    !find_helper("newgidmap", path, sizeof(path))) {
		err_set(why, -ENOENT, "newuidmap and newgidmap are not installed");
		return SANDBOX_IDS_ONE;
	}
	return SANDBOX_IDS_RANGE;
}

/* What the helper wrote to stderr, without the end of its line. */
static void read_words(int fd, char *text, size_t size)
{
	const ssize_t n = fdio_read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static int start(const char *path, char *const argv[], int said, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	rc = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	if (rc == 0)
		rc = posix_spawn(ret, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int run_helper(const char *name, char *const argv[], struct err *err)
{
	AUTO_CLOSE int ours = -1, theirs = -1;
	char path[64], said[160];
	int ends[2], status = 0, r;
	pid_t pid;

	if (!find_helper(name, path, sizeof(path)))
		return err_set(err, -ENOENT, "%s is not installed: install the package uidmap",
			       name);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "making a pipe to %s", name);
	ours = ends[0];
	theirs = ends[1];
	r = start(path, argv, theirs, &pid);
	if (r < 0)
		return err_wrap(err, r, "starting '%s'", path);
	close(TAKE_FD(theirs));
	read_words(ours, said, sizeof(said));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, -EPERM, "mapping the ids of the run: %s",
		       said[0] ? said : "the helper does not say why");
}

/* NAME PID 0 OWN 1, then 1 FIRST COUNT for each range. */
static int map_range(const char *name, pid_t pid, unsigned int own, const struct subid *ranges,
		     struct err *err)
{
	char text[ARGS_MAX][TEXT_SIZE], word[TEXT_SIZE];
	char *argv[ARGS_MAX + 1] = { word };
	unsigned int inside = 1;
	size_t n = 0;

	snprintf(word, sizeof(word), "%s", name);
	snprintf(text[n++], TEXT_SIZE, "%d", (int)pid);
	snprintf(text[n++], TEXT_SIZE, "0");
	snprintf(text[n++], TEXT_SIZE, "%u", own);
	snprintf(text[n++], TEXT_SIZE, "1");
	for (size_t i = 0; i < ranges->n; i++) {
		snprintf(text[n++], TEXT_SIZE, "%u", inside);
		snprintf(text[n++], TEXT_SIZE, "%u", ranges->list[i].first);
		snprintf(text[n++], TEXT_SIZE, "%u", ranges->list[i].count);
		inside += ranges->list[i].count;
	}
	for (size_t i = 0; i < n; i++)
		argv[i + 1] = text[i];
	argv[n + 1] = NULL;
	return run_helper(name, argv, err);
}

int ids_map_range(const struct run *run, struct err *err)
{
	struct subid uids, gids;
	int r;

	read_ranges("/etc/subuid", &uids);
	read_ranges("/etc/subgid", &gids);
	r = map_range("newgidmap", run->init, getegid(), &gids, err);
	return r < 0 ? r : map_range("newuidmap", run->init, geteuid(), &uids, err);
}

bool ids_are_answered(const struct run *run)
{
	return run->spec->root && run->ids == SANDBOX_IDS_ONE && run->spec->uid == 0;
}
