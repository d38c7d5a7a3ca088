/*
 * Which names an archive gets: all of a root, or those that differ from its base.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/tree-walk.h"
#include "image/pack-i.h"
#include "snapshot/diff/diff.h"

/* --- all -------------------------------------------------------------------------------- */

static int pack_name(const struct tree_entry *e, const char *path, unsigned depth, void *ctx,
		     struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry file = *e;
	struct pack *p = ctx;
	int r = 0;

	if (e->form == TREE_LINK)
		r = root_link(p->store, &p->root, e->ino, &file, &hold, err);
	if (r < 0)
		return err_wrap(err, r, "'%s'", path);
	return pack_entry(p, path, &file, e->form == TREE_LINK, err);
}

int pack_all(struct pack *p, struct err *err)
{
	int r = pack_entry(p, "", &p->root.top, false, err);

	return r < 0 ? r : tree_walk(p->store, &p->root.top.id, "", pack_name, p, err);
}

/* --- changes ---------------------------------------------------------------------------- */

struct changing {
	struct pack *pack;
	char *gone; /* owned; a directory that is gone, with all that was below it; NULL: none */
};

static bool is_below_gone(const struct changing *c, const char *path)
{
	const size_t n = c->gone ? strlen(c->gone) : 0;

	return c->gone && strncmp(path, c->gone, n) == 0 && path[n] == '/';
}

static int note_gone(struct changing *c, const char *path, struct err *err)
{
	free(c->gone);
	c->gone = strdup(path);
	return c->gone ? 0 : err_nomem(err);
}

static int on_change(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct changing *c = ctx;
	int r = 0;

	if (!e->after && is_below_gone(c, e->path))
		return 0;
	if (e->before && S_ISDIR(e->before->mode) && (!e->after || !S_ISDIR(e->after->mode)))
		r = note_gone(c, e->path, err);
	if (r < 0)
		return r;
	if (!e->after)
		return pack_whiteout(c->pack, e->path, err);
	return pack_entry(c->pack, e->path, e->after, e->after_linked, err);
}

int pack_changes(struct pack *p, const struct object_id *from, const struct object_id *to,
		 struct err *err)
{
	struct changing c = { .pack = p };
	const struct diff_options options = { .mtimes = true, .links = true, .deep = true };
	int r = diff_walk(p->store, from, to, &options, on_change, &c, err);

	free(c.gone);
	return r;
}
