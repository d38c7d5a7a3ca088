/*
 * lower.c - names in stored trees, answered from memory or not at all.
 */
#include <errno.h>
#include <string.h>

#include "cowfs/core/layer-i.h"
#include "cowfs/store/tree-node.h"

static int open_node(struct op *op, const struct object_id *id, struct tree_node *ret)
{
	const struct cached *o;
	char hex[OBJECT_HEX_SIZE];
	int r = op_object(op, OBJECT_TREE, id, &o);

	if (r < 0)
		return r;
	r = tree_node_open(o->data, o->len, ret, op->err);
	return r < 0 ? err_wrap(op->err, r, "tree %s", object_id_hex(id, hex)) : 0;
}

/* From a branch to the child that would hold the name; it must be of the level below. */
static int go_down(struct op *op, struct tree_node *node, const char *name, size_t len)
{
	const unsigned level = node->level;
	struct tree_child child;
	char hex[OBJECT_HEX_SIZE];
	uint32_t i;
	bool equal;
	int r = tree_node_find(node, name, len, &i, &equal, op->err);

	if (r < 0)
		return r;
	r = tree_node_child(node, equal || i == 0 ? i : i - 1, &child, op->err);
	if (r < 0)
		return r;
	r = open_node(op, &child.id, node);
	if (r < 0)
		return r;
	if (node->level + 1 != level)
		return err_set(op->err, -EBADMSG, "tree %s: level %u right below level %u",
			       object_id_hex(&child.id, hex), node->level, level);
	return r;
}

int lower_find(struct op *op, const struct object_id *tree, const char *name,
	       struct tree_entry *ret)
{
	const size_t len = strlen(name);
	struct tree_node node;
	uint32_t i;
	bool equal;
	int r;

	if (object_id_is_zero(tree))
		return -ENOENT;
	r = open_node(op, tree, &node);
	while (r >= 0 && node.level > 0)
		r = go_down(op, &node, name, len);
	if (r < 0)
		return r;
	r = tree_node_find(&node, name, len, &i, &equal, op->err);
	if (r < 0)
		return r;
	return equal ? tree_node_entry(&node, i, ret, op->err) : -ENOENT;
}

int lower_count(struct op *op, const struct object_id *tree, uint64_t *ret)
{
	struct tree_child child;
	struct tree_node node;
	uint64_t sum = 0;
	int r;

	if (object_id_is_zero(tree)) {
		*ret = 0;
		return 0;
	}
	r = open_node(op, tree, &node);
	if (r < 0)
		return r;
	for (uint32_t i = 0; node.level > 0 && i < node.n && r >= 0; i++) {
		r = tree_node_child(&node, i, &child, op->err);
		sum += r >= 0 ? child.entries : 0;
	}
	*ret = node.level > 0 ? sum : node.n;
	return r;
}
