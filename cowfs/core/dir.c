/*
 * dir.c - names: those that are known here, over those that are stored.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
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

/* --- entries ---------------------------------------------------------------------------- */

static int entry_new(struct node *dir, const char *name, bool stored, struct entry **ret)
{
	const size_t len = strlen(name);
	struct entry *e = calloc(1, sizeof(*e) + len + 1);
	int r;

	if (!e)
		return -ENOMEM;
	e->dir = dir;
	e->stored = stored;
	memcpy(e->name, name, len + 1);
	r = map_add(&dir->dir.entries, e->name, e, NULL);
	if (r < 0) {
		free(e);
		return r;
	}
	dir->dir.hidden += stored;
	*ret = e;
	return 0;
}

/* Count how it differs from what is stored, or no longer. */
static void count(struct entry *e, int n)
{
	struct dir *d = &e->dir->dir;

	if (e->stored && !e->node)
		d->hidden += (size_t)n;
	if (!e->stored && e->node)
		d->added += (size_t)n;
}

static void leave_node(struct layer *l, struct entry *e)
{
	if (!e->node)
		return;
	if (e->dir == l->links) {
		e->node->linked = NULL;
	} else {
		*e->at = e->next;
		if (e->next)
			e->next->at = e->at;
	}
	e->node = NULL;
}

static void join_node(struct layer *l, struct entry *e, struct node *n)
{
	e->node = n;
	if (e->dir == l->links) {
		n->linked = e;
		return;
	}
	e->next = n->names;
	e->at = &n->names;
	if (e->next)
		e->next->at = &e->next;
	n->names = e;
}

static void entry_point(struct layer *l, struct entry *e, struct node *n)
{
	count(e, -1);
	leave_node(l, e);
	if (n)
		join_node(l, e, n);
	count(e, 1);
}

void entry_set(struct layer *l, struct entry *e, struct node *n)
{
	entry_point(l, e, n);
	e->dir->dir.version++;
	entry_mark(l, e);
}

void entry_set_stored(struct entry *e, bool stored)
{
	count(e, -1);
	e->stored = stored;
	count(e, 1);
}

void entry_mark(struct layer *l, struct entry *e)
{
	e->changed = l->generation;
	/* Up to the first that is marked: those above it are too. */
	while (e && !e->marked) {
		struct dir *d = &e->dir->dir;

		e->marked = true;
		e->next_marked = d->marked;
		d->marked = e;
		if (!e->dir->names)
			layer_mark(l);
		e = e->dir->names;
	}
}

void entry_free(struct layer *l, struct entry *e)
{
	assert(!e->marked);
	count(e, -1);
	leave_node(l, e);
	map_remove(&e->dir->dir.entries, e->name);
	free(e);
}

/* --- finding ---------------------------------------------------------------------------- */

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
	if (r >= 0)
		*ret = link->node;
	return r;
}

/* A name that is stored and not known here yet. */
static int load(struct op *op, struct node *dir, const struct tree_entry *stored, const char *name,
		struct entry **ret)
{
	struct entry *e;
	struct node *n;
	int r;

	r = op_may_load(op);
	if (r >= 0)
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
		return r < 0 ? r : load(op, dir, &stored, name, ret);
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
	return r < 0 ? r : load(op, dir, &stored, name, ret);
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
