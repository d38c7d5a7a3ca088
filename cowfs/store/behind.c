#include "cowfs/store/behind.h"

#include <errno.h>

#include "cowfs/store/recipe.h"
#include "cowfs/store/tree-node.h"

static int behind_entry(const struct tree_entry *e, behind_fn fn, void *ctx, struct err *err)
{
	int r;

	if (!object_id_is_zero(&e->xattrs)) {
		r = fn(OBJECT_XATTRS, &e->xattrs, ctx, err);
		if (r < 0)
			return r;
	}
	switch (e->form) {
	case TREE_CHUNK:
		return fn(OBJECT_CHUNK, &e->id, ctx, err);
	case TREE_RECIPE:
		return fn(OBJECT_RECIPE, &e->id, ctx, err);
	case TREE_DIR:
		return fn(OBJECT_TREE, &e->id, ctx, err);
	case TREE_NONE:
	case TREE_LINK:
	case TREE_LAZY: /* what was kept of it is reached from its capture */
		return 0;
	}
	return err_set(err, -EBADMSG, "tree entry of unknown form %d", (int)e->form);
}

static int behind_tree(const void *data, size_t len, behind_fn fn, void *ctx, struct err *err)
{
	struct tree_node node;
	struct tree_entry e;
	struct tree_child c;
	int r = tree_node_open(data, len, &node, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < node.n && r >= 0; i++) {
		if (node.level > 0) {
			r = tree_node_child(&node, i, &c, err);
			if (r < 0)
				return r;
			r = fn(OBJECT_TREE, &c.id, ctx, err);
		} else {
			r = tree_node_entry(&node, i, &e, err);
			if (r < 0)
				return r;
			r = behind_entry(&e, fn, ctx, err);
		}
	}
	return r < 0 ? r : 0;
}

static int behind_recipe(const void *data, size_t len, behind_fn fn, void *ctx, struct err *err)
{
	struct recipe_view view;
	int r = recipe_view(data, len, &view, err);

	for (unsigned i = 0; r >= 0 && i < view.n; i++) {
		const struct object_id id = recipe_view_id(&view, i);

		if (!object_id_is_zero(&id))
			r = fn(view.level > 0 ? OBJECT_RECIPE : OBJECT_CHUNK, &id, ctx, err);
	}
	return r < 0 ? r : 0;
}

int behind_each(enum object_kind kind, const void *data, size_t len, behind_fn fn, void *ctx,
		struct err *err)
{
	switch (kind) {
	case OBJECT_TREE:
		return behind_tree(data, len, fn, ctx, err);
	case OBJECT_RECIPE:
		return behind_recipe(data, len, fn, ctx, err);
	case OBJECT_CHUNK:
	case OBJECT_XATTRS:
		break;
	}
	return 0;
}
