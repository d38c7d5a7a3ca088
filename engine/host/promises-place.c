/*
 * Where the files of a capture are. A directory that is gone from its file system is gone for good,
 * and its promises are lost. If its file system is not mounted, it may come back, and the promises
 * wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "engine/host/host-i.h"
#include "engine/host/promising-i.h"

int promising_is_absent(const struct promising *p, struct err *err)
{
	return err_set(err, -EIO,
		       "the project is not there; its file system may not be mounted ('projects "
		       "mv' if it has moved, 'projects forget' if it is gone for good)");
}

/* The nearest directory above that there is. */
static int identify_nearest(const char *path, struct sys_identity *ret, bool *ret_in_memory)
{
	AUTO_FREE char *at = strdup(path);
	char *slash;
	int r;

	if (!at)
		return -ENOMEM;
	for (;;) {
		r = sys_identify(*at ? at : "/", ret);
		*ret_in_memory = sys_is_in_memory(*at ? at : "/");
		if (r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
			return r;
		slash = strrchr(at, '/');
		if (!slash)
			return r;
		*slash = '\0';
	}
}

/* Is another file system there instead?  One in memory never comes back. */
static bool is_elsewhere(const struct project *project)
{
	struct sys_identity now = { 0 };
	bool in_memory = false;
	int r;

	if (project->fs == 0)
		return false;
	r = identify_nearest(project->path, &now, &in_memory);
	if (r < 0)
		return r != -ENOTSUP;
	return now.fs != project->fs && !in_memory;
}

static int open_top(struct promising *p, const struct project *project, struct err *err)
{
	AUTO_CLOSE int fd = open(project->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && keep_is_ours(-errno))
		return err_sys(err, "opening '%s'", project->path);
	if (is_elsewhere(project)) {
		p->absent = true;
		return promising_is_absent(p, err);
	}
	if (fd >= 0 && fstat(fd, &st) < 0)
		return err_sys(err, "'%s'", project->path);
	if (fd >= 0) {
		p->home = st.st_dev;
		p->top = TAKE_FD(fd);
	}
	/* Last: to a reader, a project that is not absent and has no directory is gone for good. */
	p->absent = false;
	return 0;
}

int promising_find_top(struct promising *p, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	AUTO_FREE char *dir = NULL;
	int r = project_get(p->all->host->store, &p->record.project, &project, err);

	if (r < 0 && r != -ENOENT)
		return r;
	/* Of a project that was forgotten there is no file left either. */
	dir = strdup(r < 0 ? "" : project.path);
	if (!dir)
		return err_nomem(err);
	pthread_mutex_lock(&p->all->lock);
	free(p->dir);
	p->dir = TAKE_PTR(dir);
	pthread_mutex_unlock(&p->all->lock);
	if (r >= 0 && !p->record.ended && !p->record.remote)
		return open_top(p, &project, err);
	p->absent = false;
	return 0;
}
