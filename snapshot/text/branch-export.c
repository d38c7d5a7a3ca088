#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fdio.h"
#include "base/path.h"
#include "snapshot/text/branch-i.h"

struct export
{
	const struct branch *branch;
	int dir;
	int r;
	struct err *err;
};

static int put_link(struct export *x, const char *path, const void *data, size_t len)
{
	AUTO_FREE char *to = strndup(data, len);

	if (!to)
		return err_nomem(x->err);
	return symlinkat(to, x->dir, path) < 0 ? err_sys(x->err, "making '%s'", path) : 0;
}

static int put_file(struct export *x, const char *path, const void *data, size_t len, mode_t mode)
{
	AUTO_CLOSE int fd =
	    openat(x->dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int r;

	if (fd < 0)
		return err_sys(x->err, "making '%s'", path);
	r = fdio_write(fd, data, len);
	if (r < 0)
		return err_set(x->err, r, "writing '%s': %s", path, strerror(-r));
	return fchmod(fd, mode) < 0 ? err_sys(x->err, "making '%s'", path) : 0;
}

static int put_blob(struct export *x, const char *path, const git_tree_entry *entry)
{
	const struct git *g = x->branch->git;
	const git_filemode_t mode = g->tree_entry_filemode(entry);
	git_blob *blob = NULL;
	const void *data;
	size_t len;
	int r = g->blob_lookup(&blob, x->branch->repo, g->tree_entry_id(entry));

	if (r < 0)
		return git_failed(g, r, path, x->err);
	data = g->blob_rawcontent(blob);
	len = (size_t)g->blob_rawsize(blob);
	if (mode == GIT_FILEMODE_LINK)
		r = put_link(x, path, data, len);
	else
		r = put_file(x, path, data, len,
			     mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644);
	g->blob_free(blob);
	return r;
}

/* The directory is empty at first and only we write in it: nothing there leads elsewhere but links that we make. */
static int put_entry(const char *root, const git_tree_entry *entry, void *ctx)
{
	struct export *x = ctx;
	const struct git *g = x->branch->git;
	AUTO_FREE char *path = path_join(*root ? root : ".", g->tree_entry_name(entry));

	if (!path) {
		x->r = err_nomem(x->err);
		return -1;
	}
	switch (g->tree_entry_filemode(entry)) {
	case GIT_FILEMODE_TREE:
	case GIT_FILEMODE_COMMIT: /* a submodule: its place is kept */
		x->r = mkdirat(x->dir, path, 0755) < 0 ? err_sys(x->err, "making '%s'", path) : 0;
		break;
	default:
		x->r = put_blob(x, path, entry);
	}
	return x->r < 0 ? -1 : 0;
}

int branch_export(const struct branch *b, int dir, struct err *err)
{
	struct export x = { .branch = b, .dir = dir, .err = err };
	int r = b->git->tree_walk(b->tree, GIT_TREEWALK_PRE, put_entry, &x);

	if (x.r < 0)
		return x.r;
	return r < 0 ? git_failed(b->git, r, b->name, err) : 0;
}
