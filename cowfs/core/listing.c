#include "cowfs/core/listing-i.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "cowfs/store/tree.h"

void listing_free(struct listing *li)
{
	if (!li)
		return;
	free(li->items);
	buf_done(&li->names);
	free(li);
}

static uint64_t cursor_of(const struct object_key *key, const char *name, size_t len)
{
	const uint64_t c = object_name_hash(key, name, len) >> 1;

	return c < CURSOR_FIRST ? c + CURSOR_FIRST : c;
}

int listing_add(struct listing *li, const struct object_key *key, const char *name, size_t len,
		uint64_t ino, uint32_t mode)
{
	if (!VEC_ROOM(li->items, li->n, li->cap))
		return -ENOMEM;
	if (li->names.len > UINT32_MAX - len - 1)
		return -EOVERFLOW;
	li->items[li->n] = (struct item){
		.cursor = cursor_of(key, name, len),
		.ino = ino,
		.type = (uint16_t)(mode & S_IFMT),
		.name = (uint32_t)li->names.len,
	};
	if (buf_append(&li->names, name, len) < 0 || buf_append_u8(&li->names, 0) < 0)
		return -ENOMEM;
	li->n++;
	return 0;
}

static int add_stored(struct listing *li, const struct object_key *key, const struct tree_entry *e)
{
	int r = listing_add(li, key, e->name, e->name_len, e->ino, e->mode);

	if (r >= 0)
		li->items[li->n - 1].promised = e->form == TREE_LAZY;
	return r;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->cursor != y->cursor)
		return x->cursor < y->cursor ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

void listing_sort(struct listing *li)
{
	VEC_SORT(li->items, li->n, compare_items);
}

int listing_add_leaf(struct listing *li, const struct object_key *key, const struct tree_node *node,
		     struct err *err)
{
	struct tree_entry e;
	int r = 0;

	for (uint32_t i = 0; i < node->n && r >= 0; i++) {
		r = tree_node_entry(node, i, &e, err);
		if (r < 0)
			return r;
		r = add_stored(li, key, &e);
	}
	return r;
}

int listing_load(struct cache *c, const struct object_id *tree, struct listing **ret,
		 struct err *err)
{
	CLEANUP(listing_free_p) struct listing *li = calloc(1, sizeof(*li));
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	const struct object_key *key = store_key(cache_store(c));
	struct tree_entry e;
	int r;

	if (!li)
		return -ENOMEM;
	li->tree = *tree;
	r = tree_iter_new(cache_store(c), tree, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0)
		r = add_stored(li, key, &e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(li);
	return 0;
}
