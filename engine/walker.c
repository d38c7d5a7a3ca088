/*
 * What is listed comes with its attributes (READDIRPLUS), so that most names cost no request of
 * their own.  The kernel lists so as long as somebody asks for attributes: that is why each
 * name is asked for here.
 *
 * That a name is missing must be known too: git looks for one in each directory.
 */
#include "engine/walker.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sys.h"

#define ENTRIES_MAX 200000

struct walk {
	char **dirs; /* owned, and each of them: paths from the top that are to be read */
	size_t n, cap;
	unsigned entries; /* seen */
};

static bool push(struct walk *w, const char *dir, const char *name)
{
	char *path;

	if (w->n == w->cap) {
		const size_t cap = w->cap ? 2 * w->cap : 64;
		char **dirs = reallocarray(w->dirs, cap, sizeof(*dirs));

		if (!dirs)
			return false;
		w->dirs = dirs;
		w->cap = cap;
	}
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return false;
	w->dirs[w->n++] = path;
	return true;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* False: there is no point in going on. */
static bool read_names(struct walk *w, DIR *dir, const char *path)
{
	const struct dirent *e;
	struct stat st;

	while ((e = readdir(dir))) {
		if (is_dots(e->d_name))
			continue;
		if (++w->entries > ENTRIES_MAX ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (S_ISDIR(st.st_mode) && !push(w, path, e->d_name)))
			return false;
	}
	IGNORE_RESULT(fstatat(dirfd(dir), ".gitignore", &st, AT_SYMLINK_NOFOLLOW),
		      "mostly there is none");
	/* To list it was to use it: its time of access must be asked for again, and then its ACL. */
	return fstat(dirfd(dir), &st) == 0 && faccessat(dirfd(dir), ".", R_OK | X_OK, 0) == 0;
}

static bool read_dir(struct walk *w, const char *path)
{
	const int fd = openat(WALKER_FD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool more;

	if (!dir)
		return false;
	more = read_names(w, dir, path);
	closedir(dir);
	return more;
}

/* It ends by itself when the mount is gone: nothing can be opened any more. */
int walker_main(void)
{
	struct walk w = { 0 };
	bool more;

	if (fcntl(WALKER_FD, F_SETFD, FD_CLOEXEC) < 0) {
		log_error("this is started by cowfsd only");
		return 2;
	}
	sys_name_process(WALKER_NAME);
	IGNORE_RESULT(setpriority(PRIO_PROCESS, 0, PRIO_MAX), "then it works at that of others");
	more = read_dir(&w, ".");
	while (more && w.n > 0) {
		AUTO_FREE char *path = w.dirs[--w.n];

		more = read_dir(&w, path);
	}
	/* What is left of the list goes with the process. */
	_exit(more ? 0 : 1);
}
