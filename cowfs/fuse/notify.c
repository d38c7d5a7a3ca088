/*
 * Names first, then directories: a listing is read again only once it is dropped, and the names in
 * it must not be answered from memory by then. Both wait for requests in progress in that
 * directory, which is why no thread that answers requests may come here.
 *
 * Directories are dropped even if none of their names was known to the kernel: it caches listings
 * separately.
 */
#include "cowfs/fuse/mates.h"

int mount_announce(struct mount *m, const struct layer_changes *changes, struct err *err)
{
	int r = 0;

	mates_announce(m, changes);
	for (size_t i = 0; i < changes->n_names && r == 0; i++)
		r = wire_expire(m, changes->names[i].dir, changes->names[i].name);
	for (size_t i = 0; i < changes->n_dirs && r == 0; i++)
		r = wire_invalidate(m, changes->dirs[i], false);
	if (r < 0 && !mount_ended(m))
		return err_wrap(err, r, "telling the kernel what changed below '%s'", m->path);
	return 0; /* without a connection the kernel remembers nothing */
}
