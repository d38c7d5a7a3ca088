/*
 * For each inotify descriptor the kernel shows which inodes of which file systems it watches
 * (/proc/PID/fdinfo). It shows less for fanotify, so any such descriptor counts.
 */
#include "engine/ask/watchers-i.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

struct search {
	char sdev[32]; /* " sdev:2f ", as lines of fdinfo have it */
};

/* One descriptor of the process whose directory in /proc is `process`. */
static bool is_watch(const struct search *s, int process, const char *fd)
{
	char name[300], target[32];
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	bool found = false;
	ssize_t n;
	FILE *info;
	int file;

	snprintf(name, sizeof(name), "fd/%s", fd);
	n = readlinkat(process, name, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	if (strcmp(target, "anon_inode:[fanotify]") == 0)
		return true;
	if (strcmp(target, "anon_inode:inotify") != 0)
		return false;
	snprintf(name, sizeof(name), "fdinfo/%s", fd);
	file = openat(process, name, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return errno != ENOENT;
	info = fdopen(file, "r");
	if (!info) {
		close(file);
		return true;
	}
	while (!found && getline(&line, &size, info) > 0)
		found = strstr(line, s->sdev) != NULL;
	fclose(info);
	return found;
}

/*
 * Other users cannot enter the mount.  One of ours that hides its descriptors may watch, and so may any
 * at which we cannot look for want of descriptors or memory.
 */
static bool process_watches(const struct search *s, int proc, const char *pid)
{
	AUTO_CLOSE int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	bool found = false;
	struct stat st;
	DIR *fds;
	int dir;

	if (process < 0 || fstat(process, &st) < 0)
		return errno != ENOENT && errno != ESRCH;
	dir = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno == EACCES)
		return st.st_uid == geteuid();
	if (dir < 0)
		return errno != ENOENT && errno != ESRCH;
	fds = fdopendir(dir);
	if (!fds) {
		close(dir);
		return true;
	}
	while (!found && (e = readdir(fds)))
		found = e->d_name[0] != '.' && is_watch(s, process, e->d_name);
	closedir(fds);
	return found;
}

bool watchers_possible(int top)
{
	struct search s;
	const struct dirent *e;
	bool found = false;
	struct stat st;
	DIR *proc;

	if (fstat(top, &st) < 0)
		return true;
	/* As the kernel numbers devices inside. */
	snprintf(s.sdev, sizeof(s.sdev), " sdev:%x ", major(st.st_dev) << 20 | minor(st.st_dev));
	proc = opendir("/proc");
	if (!proc)
		return true;
	while (!found && (e = readdir(proc)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			found = process_watches(&s, dirfd(proc), e->d_name);
	closedir(proc);
	return found;
}
