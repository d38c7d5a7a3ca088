/*
 * name.c - looking names up, and creating and removing them. Renaming is rename.c.
 *
 * Every change first checks everything that it needs, and then only memory can fail it. So an
 * operation that must be repeated has done nothing yet.
 */
#include <errno.h>
#include <string.h>

#include "cowfs/core/layer-i.h"

/* --- looking ---------------------------------------------------------------------------- */

static int lookup(struct op *op, uint64_t dir_id, const char *name, struct layer_found *ret)
{
	struct node *dir;
	struct entry *e;
	int r = node_get_dir(op->l, dir_id, &dir);

	if (r < 0)
		return r;
	r = dir_find(op, dir, name, &e);
	if (r < 0)
		return r;
	list_note_lookup(op->l, dir, e->node);
	node_found(e->node, ret);
	return r;
}

int layer_lookup(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
		 struct layer_found *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r = name_check(name);

	if (r < 0)
		return r;
	do
		r = lookup(&op, dir, name, ret);
	while (op_again(&op, &r));
	return r;
}

int layer_readlink(struct layer *l, uint64_t node, char *target, size_t size, struct err *err)
{
	LOCKED(&l->lock);
	struct node *n;
	size_t len;
	int r = node_get(l, node, &n);

	if (r < 0)
		return r;
	if (!S_ISLNK(n->mode))
		return -EINVAL;
	n->told = false; /* for its access time */
	len = strlen(n->target);
	memcpy(target, n->target, len < size ? len + 1 : size);
	return (int)len;
}

/* --- making ----------------------------------------------------------------------------- */

/* A place for a new name: nothing may be there. */
static int new_slot(struct op *op, uint64_t dir_id, const char *name, struct node **ret_dir,
		    struct entry **ret)
{
	int r = node_get_dir(op->l, dir_id, ret_dir);

	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	if (dir_is_dead(op->l, *ret_dir))
		return -ENOENT;
	r = layers_room(op->l, 0, &op->need);
	if (r < 0)
		return r;
	r = dir_slot(op, *ret_dir, name, ret);
	if (r < 0)
		return r;
	if ((*ret)->node) {
		node_release(op->l, (*ret)->node); /* it was perhaps loaded only to be seen */
		r = -EEXIST;
	}
	return r;
}

/* A slot that was made and not used says nothing that is not stored. */
void slot_drop(struct layer *l, struct entry *e)
{
	if (!e->marked && !e->node && !e->stored)
		entry_free(l, e);
}

static void set_owner(const struct op *op, const struct node *dir, struct node *n)
{
	n->uid = op->call->uid;
	n->gid = op->call->gid;
	if (dir->mode & S_ISGID) {
		n->gid = dir->gid;
		if (node_is_dir(n))
			n->mode |= S_ISGID;
	}
}

int node_make(struct op *op, const struct node *dir, uint32_t mode, struct node **ret)
{
	CLEANUP(xattr_set_free_p) struct buf *xattrs = NULL;
	struct node *n;
	int r = node_inherit_acl(op, dir, &mode, &xattrs);

	if (r < 0)
		return r;
	r = node_new(op->l, mode, &n);
	if (r < 0)
		return r;
	n->new_xattrs = TAKE_PTR(xattrs);
	if (n->new_xattrs) {
		n->xattr_len = (uint32_t)n->new_xattrs->len;
		layer_count(op->l, node_dirty_xattrs(NULL, n->new_xattrs));
	}
	n->ino = op->l->next_ino++;
	n->nlink = node_is_dir(n) ? 2 : 1;
	n->mtime = n->ctime = n->atime = layer_now();
	set_owner(op, dir, n);
	*ret = n;
	return 0;
}

/* A directory came to another, or left it; what does not know its number of links keeps it so. */
void dir_count_links(struct node *dir, const struct node *child, int n)
{
	if (node_is_dir(child) && dir->nlink > 1)
		dir->nlink = (uint32_t)((int)dir->nlink + n);
}

static void attach(struct layer *l, struct entry *e, struct node *n)
{
	entry_set(l, e, n);
	node_mark(l, n);
	dir_count_links(e->dir, n, 1);
	node_touch(l, e->dir, true);
}

static int make_child(struct op *op, const struct node *dir, const char *name, uint32_t mode,
		      const char *target, struct node **ret)
{
	struct node *n;
	int r = charge_may(op->l, 1, strlen(name) + (target ? strlen(target) : 0));

	if (r < 0)
		return r;
	r = node_make(op, dir, mode, &n);
	if (r < 0)
		return r;
	n->target = target ? strdup(target) : NULL;
	if (target && !n->target) {
		node_destroy(op->l, n);
		return -ENOMEM;
	}
	*ret = n;
	return r;
}

static int make(struct op *op, uint64_t dir_id, const char *name, uint32_t mode, uint64_t rdev,
		const char *target, struct layer_found *ret)
{
	struct node *dir, *n;
	struct entry *e;
	int r = new_slot(op, dir_id, name, &dir, &e);

	if (r < 0)
		return r;
	r = make_child(op, dir, name, mode, target, &n);
	if (r < 0) {
		slot_drop(op->l, e);
		return r;
	}
	n->rdev = S_ISCHR(mode) || S_ISBLK(mode) ? rdev : 0;
	attach(op->l, e, n);
	charge_node(op->l, n, 1);
	charge_name(op->l, name, 1);
	node_found(n, ret);
	return 0;
}

int layer_make(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
	       uint32_t mode, uint64_t rdev, struct layer_found *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r = name_check(name);

	if (r < 0)
		return r;
	do
		r = make(&op, dir, name, mode, rdev, NULL, ret);
	while (op_again(&op, &r));
	return r;
}

int layer_symlink(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
		  const char *target, struct layer_found *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r = name_check(name);

	if (r < 0)
		return r;
	if (*target == '\0')
		return -ENOENT;
	if (strlen(target) > TREE_TARGET_LEN_MAX)
		return -ENAMETOOLONG;
	do
		r = make(&op, dir, name, S_IFLNK | 0777, 0, target, ret);
	while (op_again(&op, &r));
	return r;
}

static int make_nameless(struct op *op, uint64_t dir_id, uint32_t mode, struct layer_found *ret)
{
	struct node *dir, *n;
	int r = node_get_dir(op->l, dir_id, &dir);

	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	if (dir_is_dead(op->l, dir))
		return -ENOENT;
	r = layers_room(op->l, 0, &op->need);
	if (r < 0)
		return r;
	r = charge_may(op->l, 1, 0);
	if (r < 0)
		return r;
	r = node_make(op, dir, mode, &n);
	if (r < 0)
		return r;
	n->nlink = 0;
	charge_node(op->l, n, 1);
	charge_loose(op->l, n, 1);
	node_found(n, ret);
	return 0;
}

int layer_make_nameless(struct layer *l, const struct layer_call *call, uint64_t dir, uint32_t mode,
			struct layer_found *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	do
		r = make_nameless(&op, dir, mode, ret);
	while (op_again(&op, &r));
	return r;
}

/* --- links ------------------------------------------------------------------------------ */

/* A place in the links tree for *ino, or for another number if a file there has this one. */
static int link_slot(struct op *op, uint64_t *ino, struct entry **ret)
{
	char name[ROOT_LINK_NAME_SIZE];
	int r;

	for (;;) {
		r = dir_slot(op, op->l->links, root_link_name(*ino, name), ret);
		if (r < 0 || !(*ret)->node)
			return r;
		node_release(op->l, (*ret)->node);
		*ino = op->l->next_ino++;
	}
}

/* A file's second name moves the file into the links tree, under a number of its own. */
static int may_link(struct op *op, const struct node *n, const char *name, uint64_t *ino,
		    struct entry **in_links)
{
	int r = charge_may(op->l, 0, strlen(name));

	if (r < 0 || n->linked || node_has_no_name(n))
		return r;
	return link_slot(op, ino, in_links);
}

static int add_link(struct op *op, uint64_t node_id, uint64_t dir_id, const char *name,
		    struct layer_found *ret)
{
	struct entry *e, *in_links = NULL;
	struct layer *l = op->l;
	struct node *dir, *n;
	uint64_t ino;
	bool nameless;
	int r = node_get(l, node_id, &n);

	if (r < 0)
		return r;
	if (node_is_dir(n))
		return -EPERM;
	r = new_slot(op, dir_id, name, &dir, &e);
	if (r < 0)
		return r;
	nameless = node_has_no_name(n);
	ino = n->ino;
	r = may_link(op, n, name, &ino, &in_links);
	if (r < 0) {
		slot_drop(l, e);
		return r;
	}

	if (nameless && S_ISREG(n->mode))
		l->loose -= (int64_t)n->file.data;
	if (nameless)
		charge_loose(l, n, -1);
	charge_name(l, name, 1);
	node_leave_strays(n); /* what is pinned stays so until the name is persisted */
	n->nlink++;
	n->ino = ino;
	if (in_links) {
		entry_mark(l, n->names); /* it is stored as one of several from now on */
		entry_set(l, in_links, n);
	}
	entry_set(l, e, n);
	node_touch(l, n, false);
	node_touch(l, dir, true);
	node_found(n, ret);
	return 0;
}

int layer_link(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t dir,
	       const char *name, struct layer_found *ret, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r = name_check(name);

	if (r < 0)
		return r;
	do
		r = add_link(&op, node, dir, name, ret);
	while (op_again(&op, &r));
	return r;
}

/* --- removing --------------------------------------------------------------------------- */

void name_remove(struct layer *l, struct entry *e)
{
	struct node *n = e->node, *dir = e->dir;

	charge_name(l, e->name, -1);
	entry_set(l, e, NULL);
	dir_count_links(dir, n, -1);
	n->nlink = node_is_dir(n) ? 0 : n->nlink - 1;
	if (n->nlink == 0 && n->linked)
		entry_set(l, n->linked, NULL);
	if (n->nlink == 0)
		node_orphan(l, n);
	node_touch(l, n, false);
	node_release(l, n);
}

/* 0 if what a name leads to may go, or why not. */
typedef int (*may_go_fn)(struct op *op, struct node *n);

static int is_no_dir(struct op *op, struct node *n)
{
	return node_is_dir(n) ? -EISDIR : 0;
}

static int is_empty_dir(struct op *op, struct node *n)
{
	int r = node_is_dir(n) ? dir_is_empty(op, n) : -ENOTDIR;

	return r < 0 ? r : r > 0 ? 0 : -ENOTEMPTY;
}

static int try_remove(struct op *op, uint64_t dir_id, const char *name, may_go_fn may_go)
{
	struct node *dir;
	struct entry *e;
	int r = node_get_dir(op->l, dir_id, &dir);

	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	r = dir_find(op, dir, name, &e);
	if (r < 0)
		return r;
	r = may_go(op, e->node);
	if (r < 0) {
		node_release(op->l, e->node);
		return r;
	}
	name_remove(op->l, e);
	node_touch(op->l, dir, true);
	return 0;
}

static int remove_if(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
		     may_go_fn may_go, struct err *err)
{
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r = name_check(name);

	if (r < 0)
		return r;
	do
		r = try_remove(&op, dir, name, may_go);
	while (op_again(&op, &r));
	return r;
}

int layer_unlink(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
		 struct err *err)
{
	return remove_if(l, call, dir, name, is_no_dir, err);
}

int layer_rmdir(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
		struct err *err)
{
	return remove_if(l, call, dir, name, is_empty_dir, err);
}
