/*
 * tree-edit.c - walk an old tree together with its changes, and build the new one.
 *
 * A node that no change touches is offered to the builder whole, and read only if the builder is
 * not at a place where such a node begins. So it reads the path to each change, and from there on
 * until the ends of nodes are the old ones again.
 *
 * A change of the entry after a node touches the node too: a leaf may have ended because that entry
 * found no room in it.
 */
#include "cowfs/store/tree-edit.h"

#include <assert.h>
#include <errno.h>

#include "cowfs/store/tree-build-i.h"

struct edit {
	struct tree_builder *t;       /* owned */
	const struct tree_change *at; /* the next one to apply, of `left` */
	size_t left;
};

static void edit_done(struct edit *e)
{
	tree_builder_free(e->t);
}

/* How the name of the next change compares with this one; there are no changes behind all names. */
static int next_compare(const struct edit *e, const char *name, size_t name_len)
{
	if (e->left == 0)
		return 1;
	return tree_name_compare(e->at->name, e->at->name_len, name, name_len);
}

static int apply_next(struct edit *e, struct err *err)
{
	const struct tree_change *c = e->at++;

	e->left--;
	if (!c->entry)
		return 0;
	assert(tree_name_compare(c->name, c->name_len, c->entry->name, c->entry->name_len) == 0);
	return tree_builder_add(e->t, c->entry, err);
}

/* Apply what comes before `next`, which is the next node of the old tree, or NULL: all. */
static int apply_before(struct edit *e, const struct tree_child *next, struct err *err)
{
	int r;

	while (e->left > 0 && (!next || next_compare(e, next->name, next->name_len) < 0)) {
		r = apply_next(e, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What no change touches goes over as it is. */
static int edit_leaf(struct edit *e, const struct tree_node *leaf, const struct tree_child *next,
		     struct err *err)
{
	uint32_t done = 0, place = 0;
	bool equal = false;
	int r;

	while (e->left > 0) {
		r = tree_node_find(leaf, e->at->name, e->at->name_len, &place, &equal, err);
		if (r < 0)
			return r;
		if (place == leaf->n)
			break;
		r = tree_builder_add_records(e->t, leaf, done, place, err);
		if (r < 0)
			return r;
		r = apply_next(e, err);
		if (r < 0)
			return r;
		done = place + equal;
	}
	r = tree_builder_add_records(e->t, leaf, done, leaf->n, err);
	return r < 0 ? r : apply_before(e, next, err);
}

static int edit_node(struct edit *e, const struct tree_node *node, const struct tree_child *next,
		     struct err *err);

/* Does a node fit between the record that names it and the one after that? */
static int check_place(const struct tree_node *node, unsigned level, const struct tree_child *c,
		       const struct tree_child *next, struct err *err)
{
	char hex[OBJECT_HEX_SIZE];
	uint32_t first, behind;
	bool equal, at_next;
	int r;

	if (node->level != level)
		return err_set(err, -EBADMSG, "tree %s: level %u right below level %u",
			       object_id_hex(&c->id, hex), node->level, level + 1);
	r = tree_node_find(node, c->name, c->name_len, &first, &equal, err);
	if (r < 0)
		return r;
	if (first != 0 || !equal)
		return err_set(err, -EBADMSG, "tree %s: does not begin as its branch says",
			       object_id_hex(&c->id, hex));
	if (!next)
		return 0;
	r = tree_node_find(node, next->name, next->name_len, &behind, &at_next, err);
	if (r < 0)
		return r;
	if (behind < node->n)
		return err_set(err, -EBADMSG, "tree %s: has names of the node behind it",
			       object_id_hex(&c->id, hex));
	return 0;
}

/* The node that `c` names, with `next` behind it: taken over whole if possible. */
static int edit_child(struct edit *e, unsigned level, const struct tree_child *c,
		      const struct tree_child *next, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *hold = NULL;
	struct tree_node node;
	int r;

	if (e->left == 0 || (next && next_compare(e, next->name, next->name_len) > 0)) {
		r = tree_builder_take(e->t, level, c, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	r = tree_builder_read(e->t, &c->id, &hold, &node, err);
	if (r < 0)
		return r;
	r = check_place(&node, level, c, next, err);
	if (r < 0)
		return r;
	return edit_node(e, &node, next, err);
}

static int edit_branch(struct edit *e, const struct tree_node *branch,
		       const struct tree_child *next, struct err *err)
{
	struct tree_child c, behind;
	int r = tree_node_child(branch, 0, &c, err);

	for (uint32_t i = 1; r == 0 && i < branch->n; i++) {
		r = tree_node_child(branch, i, &behind, err);
		if (r < 0)
			return r;
		r = edit_child(e, branch->level - 1, &c, &behind, err);
		c = behind;
	}
	return r < 0 ? r : edit_child(e, branch->level - 1, &c, next, err);
}

/* Each level calls for the one below it, so levels bound the depth. */
static int edit_node(struct edit *e, const struct tree_node *node, const struct tree_child *next,
		     struct err *err)
{
	return node->level == 0 ? edit_leaf(e, node, next, err) : edit_branch(e, node, next, err);
}

static int edit_tree(struct edit *e, const struct object_id *base, struct err *err)
{
	CLEANUP(cached_unref_p) const struct cached *hold = NULL;
	struct tree_node top;
	int r;

	if (object_id_is_zero(base))
		return apply_before(e, NULL, err);
	r = tree_builder_read(e->t, base, &hold, &top, err);
	if (r < 0)
		return r;
	return edit_node(e, &top, NULL, err);
}

static bool is_rising(const struct tree_change *list, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (tree_name_compare(list[i - 1].name, list[i - 1].name_len, list[i].name,
				      list[i].name_len) >= 0)
			return false;
	return true;
}

int tree_edit(struct batch *b, struct cache *c, const struct object_id *base,
	      const struct tree_change *list, size_t n, struct object_id *ret_id,
	      struct tree_summary *ret_below, struct err *err)
{
	CLEANUP(edit_done) struct edit e = { .at = list, .left = n };
	int r;

	assert(is_rising(list, n));
	r = tree_builder_new_over(b, c, &e.t, err);
	if (r < 0)
		return r;
	r = edit_tree(&e, base, err);
	if (r < 0)
		return r;
	return tree_builder_finish(e.t, ret_id, ret_below, err);
}
