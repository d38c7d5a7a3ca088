/*
 * Inode numbers are kept as they are.  A number met again that is not another name of
 * the same file - of another device, or through a bind mount, or moved while the walk
 * went on - is replaced by one from the top of the range that nothing else has.
 */
#include <errno.h>
#include <stdlib.h>

#include "snapshot/capture-i.h"

static uint64_t file_id_hash(const void *key)
{
	const struct file_id *id = key;

	return (uint64_t)id->dev * 0x9e3779b97f4a7c15ULL + (uint64_t)id->ino;
}

bool file_id_equal(const void *a, const void *b)
{
	const struct file_id *x = a, *y = b;

	return x->dev == y->dev && x->ino == y->ino;
}

static uint64_t ino_hash(const void *key)
{
	return *(const uint64_t *)key;
}

static bool ino_equal(const void *a, const void *b)
{
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

void links_init(struct links *t)
{
	*t = (struct links){
		.files = MAP_INIT(file_id_hash, file_id_equal),
		.inos = MAP_INIT(ino_hash, ino_equal),
		.spare_ino = INT64_MAX,
	};
}

void links_done(struct links *t)
{
	struct linked *l;
	uint64_t *ino;
	size_t pos;

	for (pos = 0; (l = map_next(&t->files, &pos));) {
		node_done(&l->node);
		free(l);
	}
	for (pos = 0; (ino = map_next(&t->inos, &pos));)
		free(ino);
	map_done(&t->files);
	map_done(&t->inos);
}

int links_give_ino(struct links *t, uint64_t *ino, struct err *err)
{
	AUTO_FREE uint64_t *given = malloc(sizeof(*given));
	void *existing;
	int r;

	if (!given)
		return err_nomem(err);
	*given = *ino;
	while ((r = map_add(&t->inos, given, given, &existing)) == 1)
		*given = t->spare_ino--;
	if (r < 0)
		return err_nomem(err);
	*ino = *TAKE_PTR(given);
	return 0;
}

struct linked *links_find(const struct links *t, const struct file_id *id)
{
	return map_get(&t->files, id);
}

int links_add(struct links *t, const struct file_id *id, struct linked **ret, struct err *err)
{
	AUTO_FREE struct linked *l = calloc(1, sizeof(*l));
	void *existing;
	int r;

	if (!l)
		return err_nomem(err);
	l->id = *id;
	l->node.e.ino = (uint64_t)id->ino;
	r = links_give_ino(t, &l->node.e.ino, err);
	if (r < 0)
		return r;
	if (map_add(&t->files, &l->id, l, &existing) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(l);
	return 0;
}

static int compare_links(const void *a, const void *b)
{
	const uint64_t x = (*(const struct linked *const *)a)->node.e.ino;
	const uint64_t y = (*(const struct linked *const *)b)->node.e.ino;

	return (x > y) - (x < y);
}

int links_put(const struct links *t, struct tree_builder *builder, struct root *root,
	      struct err *err)
{
	AUTO_FREE struct linked **list = calloc(t->files.n + 1, sizeof(struct linked *));
	char name[ROOT_LINK_NAME_SIZE];
	struct linked *l;
	size_t n = 0, pos = 0;
	int r;

	if (!list)
		return err_nomem(err);
	while ((l = map_next(&t->files, &pos)))
		if (l->names > 1)
			list[n++] = l;
	if (n == 0)
		return 0;
	qsort(list, n, sizeof(struct linked *), compare_links);
	for (size_t i = 0; i < n; i++) {
		struct tree_entry e = list[i]->node.e;

		e.name = root_link_name(e.ino, name);
		e.name_len = strlen(name);
		e.nlink = list[i]->names;
		r = tree_builder_add(builder, &e, err);
		if (r < 0)
			return r;
	}
	return tree_builder_finish(builder, &root->links, &root->in_links, err);
}
