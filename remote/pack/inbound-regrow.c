/*
 * A large directory of which one name changed comes as a branch and one new leaf.  The other leaves are
 * in packs of earlier pushes, which this store need not have kept: they are made again from the
 * directory that the base has at this path, whose objects have known digests.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "remote/pack/inbound-i.h"

void regrown_done(struct regrown *g)
{
	VEC_FREE(it, g->list, g->n, buf_done(&it->bytes));
	*g = (struct regrown){ 0 };
}

bool inbound_portable(struct inbound *in, const struct tree_entry *e, struct portable_entry *ret)
{
	struct digests *known = in->options->known;
	enum object_kind kind = OBJECT_TREE;

	*ret = (struct portable_entry){ .e = *e };
	if (e->form == TREE_CHUNK)
		kind = OBJECT_CHUNK;
	else if (e->form == TREE_RECIPE)
		kind = OBJECT_RECIPE;
	if (e->form != TREE_NONE && e->form != TREE_LINK &&
	    !digests_find(known, kind, &e->id, &ret->content))
		return false;
	/* What does not travel is computed again. */
	ret->e.id = ret->e.xattrs = (struct object_id){ { 0 } };
	ret->e.below = (struct tree_summary){ 0 };
	ret->e.data = 0;
	if (e->form == TREE_DIR)
		ret->e.nlink = 0;
	ret->has_xattrs = !object_id_is_zero(&e->xattrs);
	return !ret->has_xattrs || digests_find(known, OBJECT_XATTRS, &e->xattrs, &ret->xattrs);
}

/* Keep a leaf that the branch lists. */
static int keep(struct regrown *g, const struct digest_table *listed, struct portable_leaf *leaf,
		struct err *err)
{
	const struct digest d = digest_of(leaf->bytes.data, leaf->bytes.len);

	if (digest_table_find(listed, OBJECT_TREE, &d)) {
		if (!VEC_ROOM(g->list, g->n, g->cap))
			return err_nomem(err);
		g->list[g->n] = (struct regrown_leaf){ .digest = d };
		buf_swap(&g->list[g->n++].bytes, &leaf->bytes);
	}
	portable_leaf_reset(leaf);
	return 0;
}

static int list_leaves(const struct portable_node *branch, struct digest_table *listed,
		       struct err *err)
{
	struct portable_node node = *branch;
	struct digest leaf;

	while (portable_next_leaf(&node, &leaf) > 0)
		if (digest_table_add(listed, OBJECT_TREE, &leaf, 0) < 0)
			return err_nomem(err);
	return 0;
}

int regrown_fill(struct inbound *in, const struct object_id *base,
		 const struct portable_node *branch, struct regrown *g, struct err *err)
{
	CLEANUP(portable_leaf_done) struct portable_leaf leaf = { 0 };
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	CLEANUP(digest_table_done) struct digest_table listed = { 0 };
	struct portable_entry p;
	struct tree_entry e;
	int r = list_leaves(branch, &listed, err);

	if (r == 0)
		r = tree_iter_new(in->store, base, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		if (!inbound_portable(in, &e, &p))
			return 0; /* the packs have it */
		if (portable_leaf_add(&leaf, &p) < 0)
			return err_nomem(err);
		if (portable_leaf_ends(&leaf, e.name, e.name_len))
			r = keep(g, &listed, &leaf, err);
	}
	return r == 0 && leaf.n > 0 ? keep(g, &listed, &leaf, err) : r;
}

bool regrown_take(struct regrown *g, const struct digest *d, struct buf *out)
{
	for (size_t i = 0; i < g->n; i++)
		if (digest_equal(&g->list[i].digest, d)) {
			buf_swap(out, &g->list[i].bytes);
			return true;
		}
	return false;
}
