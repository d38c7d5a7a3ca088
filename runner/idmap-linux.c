/*
 * idmap-linux.c - mounts on which root's files are root's, for a run that is not root.
 *
 * Mapping the ids of a file system takes a privilege over it, so the caller does this, in its own
 * mount namespace, and sends the mounts to the init. Files that the run then makes on them as its
 * user 0 are user 0's on disk; everywhere else that is an id that owns nothing. Where the kernel
 * cannot map the ids of a file system, its server may do so (`as_is`): the mount is sent unmapped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/sys.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

/* Mounts below one that is shown, and whether the run can see any of them. */
struct below {
	const struct sandbox_spec *spec;
	size_t shown; /* its place among the mounts of the spec */
	bool seen;
};

static int look_at_mount(const char *path, dev_t dev, void *ctx)
{
	struct below *b = ctx;
	const struct sandbox_mount *m = &b->spec->mounts[b->shown];
	AUTO_FREE char *guest = NULL;
	bool hidden = false;

	if (strcmp(path, m->host) == 0 || !path_is_below(path, m->host))
		return 0;
	guest = path_join(m->guest, path + strlen(m->host) + (m->host[1] != '\0'));
	if (!guest)
		return -ENOMEM;
	for (size_t i = b->shown + 1; i < b->spec->n_mounts && !hidden; i++)
		hidden = b->spec->mounts[i].kind == SANDBOX_HIDE &&
			 path_is_below(guest, b->spec->mounts[i].guest);
	b->seen |= !hidden;
	return 0;
}

/* Is all that is mounted below hidden from the run anyway?  So are the clones of a store. */
static bool all_below_is_hidden(const struct sandbox_spec *spec, size_t shown)
{
	struct below b = { .spec = spec, .shown = shown };

	return sys_each_mount(look_at_mount, &b) >= 0 && !b.seen;
}

static int open_mapped(int host, int userns, unsigned int recursive, bool as_is)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns,
	};
	AUTO_CLOSE int tree = mount_open_tree(
	    host, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive);

	if (tree < 0 || (!as_is && mount_set(tree, recursive, &attr) < 0))
		return -errno;
	return TAKE_FD(tree);
}

static int idmap_tree(const struct sandbox_spec *spec, size_t i, int userns, struct err *err)
{
	const struct sandbox_mount *m = &spec->mounts[i];
	AUTO_CLOSE int host = mounts_open_host(m, err);
	int tree;

	if (host < 0)
		return host;
	tree = open_mapped(host, userns, AT_RECURSIVE, m->as_is);
	if ((tree == -EINVAL || tree == -EOPNOTSUPP) && all_below_is_hidden(spec, i))
		tree = open_mapped(host, userns, 0, m->as_is);
	if (tree >= 0)
		return tree;
	if (tree == -EINVAL || tree == -EOPNOTSUPP)
		return err_set(err, -ENOTSUP,
			       "'%s' cannot be shown to a run by root: its file system, or "
			       "this kernel's for it, knows no idmapped mounts",
			       m->host);
	errno = -tree;
	return err_sys(err, "mapping the ids of '%s'", m->host);
}

int idmap_open(struct run *run, struct err *err)
{
	char path[64];

	if (!run->privileged && !run->spec->root)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)run->init);
	run->userns = open(path, O_RDONLY | O_CLOEXEC);
	return run->userns < 0 ? err_sys(err, "opening '%s'", path) : 0;
}

int idmap_trees(struct run *run, struct err *err)
{
	if (!run->privileged)
		return 0;
	for (size_t i = 0; i < run->spec->n_mounts; i++) {
		const struct sandbox_mount *m = &run->spec->mounts[i];

		if (m->kind != SANDBOX_BIND || !m->owned)
			continue;
		run->trees[i] = idmap_tree(run->spec, i, run->userns, err);
		if (run->trees[i] < 0)
			return run->trees[i];
		run->walls |= WALL_BIT(WALL_IDMAP);
	}
	return 0;
}
