/*
 * dir.c - finding names: those in memory, over the stored ones.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "cowfs/core/layer-i.h"

int name_check(const char *name)
{
	const size_t len = strlen(name);

	if (len > TREE_NAME_LEN_MAX)
		return -ENAMETOOLONG;
	return path_name_valid(name, len) ? 0 : -EINVAL;
}

bool dir_is_dead(const struct layer *l, const struct node *dir)
{
	return !dir->names && dir != l->top && dir != l->links;
}

static int load_node(struct op *op, struct node *dir, const struct tree_entry *stored,
		     struct node **ret)
{
	char name[ROOT_LINK_NAME_SIZE];
	struct entry *link;
	int r;

	if (stored->form != TREE_LINK)
		return node_from_entry(op->l, stored, ret);
	if (dir == op->l->links)
		return err_set(op->err, -EBADMSG, "a link in the links tree");
	r = dir_find(op, op->l->links, root_link_name(stored->ino, name), &link);
	if (r == -ENOENT)
		return err_set(op->err, -EBADMSG, "file %s is not in the links tree", name);
	if (r < 0)
		return r;
	*ret = link->node;
	return r;
}

/* A name that is stored and not known here yet. */
static int load_name(struct op *op, struct node *dir, const struct tree_entry *stored,
		     const char *name, struct entry **ret)
{
	struct entry *e = NULL;
	struct node *n = NULL;
	int r = op_may_load(op);

	if (r < 0)
		return r;
	r = load_node(op, dir, stored, &n);
	if (r < 0)
		return r;
	r = entry_new(dir, name, true, &e);
	if (r < 0) {
		node_release(op->l, n);
		return r;
	}
	entry_point(op->l, e, n);
	*ret = e;
	return 0;
}

/* What is stored of a directory that is gone does not count. */
static int find_stored(struct op *op, const struct node *dir, const char *name,
		       struct tree_entry *ret)
{
	return dir_is_dead(op->l, dir) ? -ENOENT : lower_find(op, &dir->dir.base, name, ret);
}

int dir_find(struct op *op, struct node *dir, const char *name, struct entry **ret)
{
	struct entry *e = map_get(&dir->dir.entries, name);
	struct tree_entry stored;
	int r;

	if (!e) {
		r = find_stored(op, dir, name, &stored);
		return r < 0 ? r : load_name(op, dir, &stored, name, ret);
	}
	if (!e->node)
		return -ENOENT;
	*ret = e;
	return 0;
}

int dir_slot(struct op *op, struct node *dir, const char *name, struct entry **ret)
{
	struct entry *e = map_get(&dir->dir.entries, name);
	struct tree_entry stored;
	int r;

	if (e) {
		*ret = e;
		return 0;
	}
	r = find_stored(op, dir, name, &stored);
	if (r == -ENOENT)
		return entry_new(dir, name, false, ret);
	return r < 0 ? r : load_name(op, dir, &stored, name, ret);
}

int dir_is_empty(struct op *op, struct node *dir)
{
	const struct dir *d = &dir->dir;
	uint64_t n;
	int r;

	if (d->added > 0)
		return 0;
	r = lower_count(op, &d->base, &n);
	return r < 0 ? r : n == d->hidden;
}
