/*
 * tree.c - find a name in a tree, or walk its names.
 *
 * A node's bytes have been checked against its id when they arrive here. The way down checks that
 * nodes fit together: a child is of the level below and begins with the name in its branch, so no
 * name can hide between nodes.
 */
#include "cowfs/store/tree.h"

#include <errno.h>

#include "cowfs/store/cache.h"
#include "cowfs/store/tree-node.h"

/* A node that another object names must exist, so a missing one is damage. */
static int load_node(struct store *s, const struct object_id *id, struct buf *bytes,
		     struct tree_node *ret, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];
	int r = cache_require(s, OBJECT_TREE, id, bytes, err);

	if (r < 0)
		return r;
	r = tree_node_open(bytes->data, bytes->len, ret, err);
	if (r < 0)
		return err_wrap(err, r, "tree %s", object_id_hex(id, hex));
	return 0;
}

/* The node that record i of a branch names; `bytes` must not hold the branch. */
static int load_child(struct store *s, const struct tree_node *branch, uint32_t i,
		      struct buf *bytes, struct tree_node *ret, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];
	struct tree_child c;
	uint32_t first;
	bool equal;
	int r = tree_node_child(branch, i, &c, err);

	if (r < 0)
		return r;
	r = load_node(s, &c.id, bytes, ret, err);
	if (r < 0)
		return r;
	if (ret->level + 1 != branch->level)
		return err_set(err, -EBADMSG, "tree %s: level %u right below level %u",
			       object_id_hex(&c.id, hex), ret->level, branch->level);
	r = tree_node_find(ret, c.name, c.name_len, &first, &equal, err);
	if (r < 0)
		return err_wrap(err, r, "tree %s", object_id_hex(&c.id, hex));
	if (first != 0 || !equal)
		return err_set(err, -EBADMSG, "tree %s: does not begin as its branch says",
			       object_id_hex(&c.id, hex));
	return 0;
}

/* Which child of a branch would hold the name; the first, for names before all of them. */
static int find_child(const struct tree_node *branch, const char *name, size_t name_len,
		      uint32_t *ret_i, struct err *err)
{
	uint32_t i;
	bool equal;
	int r = tree_node_find(branch, name, name_len, &i, &equal, err);

	if (r < 0)
		return r;
	*ret_i = equal || i == 0 ? i : i - 1;
	return 0;
}

int tree_lookup(struct store *s, const struct object_id *tree, const char *name, size_t name_len,
		struct tree_entry *ret, struct buf *hold, struct err *err)
{
	CLEANUP(buf_done) struct buf below = BUF_INIT;
	struct tree_node node, child;
	uint32_t i;
	bool equal;
	int r = load_node(s, tree, hold, &node, err);

	if (r < 0)
		return r;
	while (node.level > 0) {
		r = find_child(&node, name, name_len, &i, err);
		if (r < 0)
			return r;
		r = load_child(s, &node, i, &below, &child, err);
		if (r < 0)
			return r;
		buf_swap(hold, &below);
		node = child;
	}
	r = tree_node_find(&node, name, name_len, &i, &equal, err);
	if (r < 0)
		return r;
	return equal ? tree_node_entry(&node, i, ret, err) : -ENOENT;
}

/* A node on the way from the top to the present leaf. */
struct step {
	struct buf bytes;
	struct tree_node node; /* borrows from `bytes` */
	uint32_t next;         /* the record to give, or to go down to */
};

struct tree_iter {
	struct store *s; /* borrowed */
	struct step steps[TREE_LEVEL_MAX + 1];
	unsigned depth; /* steps in use; the first is the top node and stays */
};

int tree_iter_new(struct store *s, const struct object_id *tree, struct tree_iter **ret,
		  struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = calloc(1, sizeof(*it));
	int r;

	if (!it)
		return err_nomem(err);
	it->s = s;
	r = load_node(s, tree, &it->steps[0].bytes, &it->steps[0].node, err);
	if (r < 0)
		return r;
	it->depth = 1;
	*ret = TAKE_PTR(it);
	return 0;
}

void tree_iter_free(struct tree_iter *it)
{
	if (!it)
		return;
	for (unsigned i = 0; i <= TREE_LEVEL_MAX; i++)
		buf_done(&it->steps[i].bytes);
	free(it);
}

/* From a branch to its next child.  Levels fall by one each time, so the steps suffice. */
static int step_down(struct tree_iter *it, struct err *err)
{
	struct step *from = &it->steps[it->depth - 1], *to = from + 1;
	int r = load_child(it->s, &from->node, from->next, &to->bytes, &to->node, err);

	if (r < 0)
		return r;
	from->next++;
	to->next = 0;
	it->depth++;
	return 0;
}

/* Where something is left to give; the top if there is nothing. */
static struct step *step_up(struct tree_iter *it)
{
	struct step *step = &it->steps[it->depth - 1];

	for (; it->depth > 1 && step->next == step->node.n; step--)
		it->depth--;
	return step;
}

void tree_iter_skip_same(struct tree_iter *a, struct tree_iter *b)
{
	for (;;) {
		struct step *x = step_up(a), *y = step_up(b);

		if (x->next == x->node.n || y->next == y->node.n ||
		    !tree_node_same(&x->node, x->next, &y->node, y->next))
			return;
		x->next++;
		y->next++;
	}
}

int tree_iter_next(struct tree_iter *it, struct tree_entry *ret, struct err *err)
{
	int r;

	for (;;) {
		struct step *step = step_up(it);

		if (step->next == step->node.n) {
			return 0;
		} else if (step->node.level > 0) {
			r = step_down(it, err);
			if (r < 0)
				return r;
		} else {
			r = tree_node_entry(&step->node, step->next, ret, err);
			if (r < 0)
				return r;
			step->next++;
			return 1;
		}
	}
}
