/*
 * may-read.c - is a directory one that cowfsd may read, or does it show a clone of this store?
 */
#include <errno.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/sys.h"
#include "base/vec.h"
#include "engine/host/host-i.h"

/* Our mounts are those below `clones`; all others on the same devices show the same files. */
struct showing {
	const char *clones, *path;
	dev_t *devs; /* owned */
	size_t n, cap;
	bool shown; /* one of them is at or below `path`, or the other way round */
};

static void showing_done(struct showing *s)
{
	free(s->devs);
}

static int add_own(const char *path, dev_t dev, void *ctx)
{
	struct showing *s = ctx;

	if (!path_is_below(path, s->clones))
		return 0;
	if (!VEC_ROOM(s->devs, s->n, s->cap))
		return -ENOMEM;
	s->devs[s->n++] = dev;
	return 0;
}

static int find_shown(const char *path, dev_t dev, void *ctx)
{
	struct showing *s = ctx;

	if (path_is_below(path, s->clones) ||
	    (!path_is_below(path, s->path) && !path_is_below(s->path, path)))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		s->shown |= s->devs[i] == dev;
	return 0;
}

int host_may_read(struct host *h, const char *path, struct err *err)
{
	CLEANUP(showing_done) struct showing s = { .clones = h->clones, .path = path };
	int r;

	if (path_is_below(path, h->dir))
		return err_set(err, -ECANCELED, "'%s' is inside the store", path);
	r = sys_each_mount(add_own, &s);
	r = r < 0 || s.n == 0 ? r : sys_each_mount(find_shown, &s);
	if (r < 0)
		return err_set(err, r, "cannot tell what is mounted at '%s'", path);
	if (s.shown)
		return err_set(err, -ECANCELED, "a clone of this store is mounted at or in '%s'",
			       path);
	return 0;
}
