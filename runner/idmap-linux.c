/*
 * idmap-linux.c - mounts on which root's files are root's, for a run that is not root.
 *
 * Only who is privileged over a file system may map its ids, so the caller does this, in its
 * own mount namespace, and sends the trees to the init.  What the run then makes on them as
 * its user 0 is user 0's on disk; everywhere else it is an id that owns nothing.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "runner/mount-api.h"
#include "runner/sandbox-i.h"

static int idmap_tree(const struct sandbox_mount *m, int userns, struct err *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)userns,
	};
	AUTO_CLOSE int host = mounts_open_host(m, err), tree = -1;

	if (host < 0)
		return host;
	tree = mount_open_tree(host, "",
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0)
		return err_sys(err, "cloning the mount of '%s'", m->host);
	if (mount_set(tree, AT_RECURSIVE, &attr) < 0) {
		if (errno == EINVAL || errno == EOPNOTSUPP)
			return err_set(err, -ENOTSUP,
				       "'%s' cannot be shown to a run by root: its file system, or "
				       "this kernel's for it, knows no idmapped mounts",
				       m->host);
		return err_sys(err, "mapping the ids of '%s'", m->host);
	}
	return TAKE_FD(tree);
}

int idmap_open(struct run *run, struct err *err)
{
	char path[64];

	if (!run->privileged)
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
		run->trees[i] = idmap_tree(m, run->userns, err);
		if (run->trees[i] < 0)
			return run->trees[i];
		run->walls |= WALL_BIT(WALL_IDMAP);
	}
	return 0;
}
