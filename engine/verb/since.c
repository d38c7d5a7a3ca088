#include "engine/api/since.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/sys.h"
#include "engine/find/engine-i.h"
#include "engine/verb/git-run-i.h"

/* One word for a shell. */
static int add_word(struct buf *b, const char *word)
{
	int r = buf_append_u8(b, '\'');

	for (; r >= 0 && *word; word++)
		r = *word == '\'' ? buf_append_str(b, "'\\''") : buf_append_u8(b, (uint8_t)*word);
	return r < 0 ? r : buf_append_u8(b, '\'');
}

/*
 * A line for a shell, to which git adds its version and the token.  Where nobody can answer, as in a
 * run, git looks at everything, and there is nothing to say about it each time.
 */
static int write_hook(const struct engine *e, struct buf *ret)
{
	char self[PATH_MAX];
	const char *known = sys_self_path(self, sizeof(self));
	AUTO_FREE char *path =
	    known ? realpath(known, NULL) : NULL; /* /proc/self is the caller's */

	if (!path || add_word(ret, path) < 0 || buf_append_str(ret, " --store ") < 0 ||
	    add_word(ret, e->store_path) < 0 || buf_append_str(ret, " fsmonitor 2>/dev/null") < 0)
		return -ENOMEM;
	return buf_str(ret) ? 0 : -ENOMEM;
}

int engine_since_setup(struct engine *e, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf hook = BUF_INIT;
	AUTO_FREE char *git = path_join(path, ".git");
	AUTO_FREE char *config = git ? path_join(git, "config") : NULL;
	AUTO_FREE char *common = git ? path_join(git, "commondir") : NULL;
	struct stat dir, file, other;
	int r;

	if (!config || !common || write_hook(e, &hook) < 0)
		return err_nomem(err);
	/* A file, a symlink or a `commondir` leads to a repository, or to settings, that others share. */
	if (lstat(git, &dir) < 0 || !S_ISDIR(dir.st_mode) || lstat(config, &file) < 0 ||
	    !S_ISREG(file.st_mode) || lstat(common, &other) == 0)
		return err_set(err, -ECANCELED, "'%s' is no repository of its own", path);
	/* The one that can fail comes first: no half of it stays. */
	r = git_run_configure(git, "core.fsmonitor", buf_str(&hook), err);
	r = r < 0 ? r : git_run_configure(git, "core.fsmonitorHookVersion", "2", err);
	return r < 0 ? r : git_run_configure(git, "core.untrackedCache", "true", err);
}
