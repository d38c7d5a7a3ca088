/*
 * rename.c - a name moves, takes the place of another, or changes places with it.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/vec.h"
#include "cowfs/core/layer-i.h"

struct renaming {
	struct entry *from, *to; /* `to` may be a whiteout */
	unsigned flags;
};

/* Would `dir` come to lie below itself? */
static bool is_inside(const struct node *inner, const struct node *dir)
{
	for (; inner; inner = inner->names ? inner->names->dir : NULL)
		if (inner == dir)
			return true;
	return false;
}

/* May what is at `to` be replaced by what is at `from`? */
static int may_replace(struct op *op, const struct renaming *rn)
{
	const struct node *from = rn->from->node;
	struct node *to = rn->to->node;
	int r;

	if (rn->flags & LAYER_RENAME_NOREPLACE)
		return -EEXIST;
	if (from == to)
		return 0;
	if (!node_is_dir(to))
		return node_is_dir(from) ? -ENOTDIR : 0;
	if (!node_is_dir(from))
		return -EISDIR;
	r = dir_is_empty(op, to);
	return r == 0 ? -ENOTEMPTY : r < 0 ? r : 0;
}

static int check(struct op *op, const struct renaming *rn)
{
	if (node_is_dir(rn->from->node) && is_inside(rn->to->dir, rn->from->node))
		return -EINVAL;
	if (rn->flags & LAYER_RENAME_EXCHANGE) {
		if (!rn->to->node)
			return -ENOENT;
		return node_is_dir(rn->to->node) && is_inside(rn->from->dir, rn->to->node) ? -EINVAL
											   : 0;
	}
	return rn->to->node ? may_replace(op, rn) : 0;
}

static int may_move(struct op *op, const struct renaming *rn)
{
	if (!node_is_dir(rn->from->node) && !(rn->to->node && node_is_dir(rn->to->node)))
		return 0;
	if (op->call->keeps_dirs)
		return -EXDEV;
	if (op->l->names_held == 0 || clock_ms() >= op->l->names_until)
		return 0;
	op->need = (struct need){ .kind = NEED_NAMES };
	return -EAGAIN;
}

static void move(struct layer *l, struct node *n, struct entry *to)
{
	entry_set(l, to, n);
	dir_count_links(to->dir, n, 1);
	node_touch(l, n, false);
}

static void exchange(struct layer *l, struct renaming *rn)
{
	struct node *a = rn->from->node, *b = rn->to->node;

	dir_count_links(rn->from->dir, a, -1);
	dir_count_links(rn->to->dir, b, -1);
	entry_set(l, rn->from, NULL);
	entry_set(l, rn->to, NULL);
	move(l, a, rn->to);
	move(l, b, rn->from);
}

static void replace(struct layer *l, struct renaming *rn, struct node *whiteout)
{
	struct node *n = rn->from->node;

	if (rn->to->node)
		name_remove(l, rn->to);
	charge_name(l, rn->from->name, -1);
	charge_name(l, rn->to->name, 1);
	dir_count_links(rn->from->dir, n, -1);
	entry_set(l, rn->from, NULL);
	move(l, n, rn->to);
	if (whiteout) {
		entry_set(l, rn->from, whiteout);
		charge_node(l, whiteout, 1);
		charge_name(l, rn->from->name, 1);
		node_mark(l, whiteout);
	}
}

/*
 * A file takes the place of another, or was synced before it got its name: so programs save what
 * must not be lost, and many sync nothing after the rename.
 */
static bool wants_to_stay(const struct layer *l, const struct renaming *rn)
{
	const struct node *n = rn->from->node;

	if (node_is_dir(n))
		return false;
	if (rn->to->node)
		return true;
	return VEC_HAS(one, l->synced, LAYER_SYNCED, *one == n->id);
}

static int apply(struct op *op, struct renaming *rn)
{
	struct node *from_dir = rn->from->dir, *to_dir = rn->to->dir, *whiteout = NULL;
	bool hurry;
	int r = 0;

	if (rn->flags & LAYER_RENAME_WHITEOUT)
		r = node_make(op, from_dir, S_IFCHR, &whiteout);
	if (r < 0)
		return r;
	hurry = wants_to_stay(op->l, rn);
	if (rn->flags & LAYER_RENAME_EXCHANGE)
		exchange(op->l, rn);
	else
		replace(op->l, rn, whiteout);
	node_touch(op->l, from_dir, true);
	node_touch(op->l, to_dir, true);
	if (hurry)
		layer_hurry(op->l);
	return 0;
}

/* What was loaded and not changed after all. */
static void leave(struct layer *l, struct renaming *rn)
{
	struct node *from = rn->from->node, *to = rn->to ? rn->to->node : NULL;

	if (rn->to)
		slot_drop(l, rn->to);
	node_release(l, from);
	if (to && to != from)
		node_release(l, to);
}

static int find_slot_and_move(struct op *op, struct renaming *rn, struct node *new_dir,
			      const char *new_name)
{
	struct node *from = rn->from->node;
	int r;

	from->pins++; /* another name of it may be loaded, in vain */
	r = dir_slot(op, new_dir, new_name, &rn->to);
	from->pins--;
	if (r < 0)
		return r;
	r = check(op, rn);
	if (r == 0)
		r = may_move(op, rn);
	/* Two names of one file: POSIX wants both to stay. */
	if (r < 0 || rn->from->node == rn->to->node)
		return r;
	return apply(op, rn);
}

static int rename_name(struct op *op, uint64_t dir_id, const char *name, uint64_t new_dir_id,
		       const char *new_name, unsigned flags)
{
	struct renaming rn = { .flags = flags };
	struct node *dir, *new_dir;
	int r = node_get_dir(op->l, dir_id, &dir);

	if (r < 0)
		return r;
	r = node_get_dir(op->l, new_dir_id, &new_dir);
	if (r < 0)
		return r;
	r = op_may_change(op);
	if (r < 0)
		return r;
	if (dir_is_dead(op->l, new_dir))
		return -ENOENT;
	r = dir_find(op, dir, name, &rn.from);
	if (r < 0)
		return r;
	r = find_slot_and_move(op, &rn, new_dir, new_name);
	if (r < 0 || rn.from->node == rn.to->node)
		leave(op->l, &rn);
	return r;
}

int layer_rename(struct layer *l, const struct layer_call *call, uint64_t dir, const char *name,
		 uint64_t new_dir, const char *new_name, unsigned flags, struct err *err)
{
	const unsigned known =
	    LAYER_RENAME_NOREPLACE | LAYER_RENAME_EXCHANGE | LAYER_RENAME_WHITEOUT;
	CLEANUP(op_end) struct op op = op_begin(l, call, err);
	int r;

	if ((flags & ~known) || ((flags & LAYER_RENAME_EXCHANGE) && flags != LAYER_RENAME_EXCHANGE))
		return -EINVAL;
	r = name_check(name);
	if (r < 0)
		return r;
	r = name_check(new_name);
	if (r < 0)
		return r;
	do
		r = rename_name(&op, dir, name, new_dir, new_name, flags);
	while (op_again(&op, &r));
	return r;
}
