#include "engine/act/pick-i.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

#define DEPTH_MAX 2048 /* PATH_MAX has no room for more */

struct picking {
	struct batch *batch;
	struct store *store;
	const struct root *from;
	const struct strlist *paths;
};

/* A directory that was put. */
struct made {
	struct object_id id;
	struct tree_summary below;
	uint32_t nlink;
};

static int too_deep(struct err *err)
{
	return err_set(err, -ELOOP, "its directories are nested too deep");
}

static int copy_dir(const struct picking *p, const struct object_id *dir, unsigned depth,
		    struct made *ret, struct err *err);

/* Add all of an entry. */
static int add_whole(const struct picking *p, struct tree_builder *to, const struct tree_entry *e,
		     unsigned depth, struct made *made, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry put = *e;
	struct made in;
	int r = 0;

	made->nlink += e->form == TREE_DIR;
	if (e->form == TREE_LINK) {
		r = root_link(p->store, p->from, e->ino, &put, &hold, err);
		put.name = e->name;
		put.name_len = e->name_len;
		put.nlink = 0;
	} else if (e->form == TREE_DIR && e->below.links) {
		r = copy_dir(p, &e->id, depth + 1, &in, err);
		if (r < 0)
			return r;
		put.id = in.id;
		put.below = in.below;
		put.nlink = in.nlink;
	}
	return r < 0 ? r : tree_builder_add(to, &put, err);
}

/* The directory without TREE_LINK entries. */
static int copy_dir(const struct picking *p, const struct object_id *dir, unsigned depth,
		    struct made *ret, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *to = NULL;
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = depth > DEPTH_MAX ? too_deep(err) : tree_builder_new(p->batch, &to, err);

	if (r < 0)
		return r;
	r = tree_iter_new(p->store, dir, &it, err);
	if (r < 0)
		return r;
	*ret = (struct made){ .nlink = 2 };
	while ((r = tree_iter_next(it, &e, err)) > 0) {
		r = add_whole(p, to, &e, depth, ret, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : tree_builder_finish(to, &ret->id, &ret->below, err);
}

/* Paths first..end share the `skip` bytes before the name that is next. */
static int pick_dir(const struct picking *p, const struct object_id *dir, size_t first, size_t end,
		    size_t skip, unsigned depth, struct made *ret, struct err *err);

static size_t same_name(const struct picking *p, size_t first, size_t end, size_t skip, size_t len)
{
	const char *name = p->paths->list[first] + skip;
	size_t n = first + 1;

	while (n < end && strncmp(p->paths->list[n] + skip, name, len) == 0 &&
	       p->paths->list[n][skip + len] == '/')
		n++;
	return n;
}

/* What paths first..end have at this name: all of it, or some of a directory. */
static int pick_name(const struct picking *p, const struct object_id *dir, struct tree_builder *to,
		     size_t first, size_t end, size_t skip, size_t len, unsigned depth,
		     struct made *made, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	const char *path = p->paths->list[first];
	struct tree_entry e;
	struct made in;
	int r = tree_lookup(p->store, dir, path + skip, len, &e, &hold, err);

	if (r == -ENOENT)
		return err_set(err, r, "it has no '%.*s'", (int)(skip + len), path);
	if (r < 0)
		return r;
	if (path[skip + len] == '\0')
		return add_whole(p, to, &e, depth, made, err);
	if (e.form != TREE_DIR)
		return err_set(err, -ENOTDIR, "'%.*s' is no directory there", (int)(skip + len),
			       path);
	r = pick_dir(p, &e.id, first, end, skip + len + 1, depth + 1, &in, err);
	if (r < 0)
		return r;
	e.id = in.id;
	e.below = in.below;
	e.nlink = in.nlink;
	made->nlink++;
	return tree_builder_add(to, &e, err);
}

static int pick_dir(const struct picking *p, const struct object_id *dir, size_t first, size_t end,
		    size_t skip, unsigned depth, struct made *ret, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *to = NULL;
	int r = depth > DEPTH_MAX ? too_deep(err) : tree_builder_new(p->batch, &to, err);

	*ret = (struct made){ .nlink = 2 };
	while (r >= 0 && first < end) {
		const size_t len = strcspn(p->paths->list[first] + skip, "/");
		const size_t next = same_name(p, first, end, skip, len);

		r = pick_name(p, dir, to, first, next, skip, len, depth, ret, err);
		first = next;
	}
	return r < 0 ? r : tree_builder_finish(to, &ret->id, &ret->below, err);
}

int pick_paths(struct batch *b, const struct root *from, const struct strlist *paths,
	       struct root *ret, struct err *err)
{
	const struct picking p = {
		.batch = b,
		.store = batch_store(b),
		.from = from,
		.paths = paths,
	};
	struct made top;
	int r = pick_dir(&p, &from->top.id, 0, paths->n, 0, 0, &top, err);

	if (r < 0)
		return r;
	*ret = (struct root){ .top = from->top };
	ret->top.id = top.id;
	ret->top.below = top.below;
	ret->top.nlink = top.nlink;
	return 0;
}
