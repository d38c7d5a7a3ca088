#include "cowfs/store/tree-walk.h"

#include <errno.h>

#include "base/buf.h"

#define DEPTH_MAX 2048 /* PATH_MAX has no room for more */

struct walk {
	struct store *store;
	struct buf path;
	tree_walk_fn fn;
	void *ctx;
};

static const char *path_to(struct walk *w, size_t dir_len, const struct tree_entry *e)
{
	w->path.len = dir_len;
	if ((dir_len > 0 && buf_append(&w->path, "/", 1) < 0) ||
	    buf_append(&w->path, e->name, e->name_len) < 0)
		return NULL;
	return buf_str(&w->path);
}

static int walk_dir(struct walk *w, const struct object_id *dir, unsigned depth, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	const size_t dir_len = w->path.len;
	struct tree_entry e;
	int r;

	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "its directories are nested too deep");
	r = tree_iter_new(w->store, dir, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		const char *path = path_to(w, dir_len, &e);

		if (!path)
			return err_nomem(err);
		r = w->fn(&e, path, depth, w->ctx, err);
		if (r == 0 && e.form == TREE_DIR)
			r = walk_dir(w, &e.id, depth + 1, err);
	}
	return r;
}

int tree_walk(struct store *s, const struct object_id *tree, const char *top, tree_walk_fn fn,
	      void *ctx, struct err *err)
{
	struct walk w = { .store = s, .fn = fn, .ctx = ctx };
	int r = buf_append_str(&w.path, top) < 0 ? err_nomem(err) : walk_dir(&w, tree, 0, err);

	buf_done(&w.path);
	return r;
}
