/*
 * The first thread that meets a file with several names reads it; the others wait.  If the first
 * finds that its name now means another file, the next waiting thread reads it by its own name.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/capture/capture-i.h"

static uint64_t hash_id(const void *key)
{
	const struct file_id *id = key;

	return (uint64_t)id->dev * 0x9e3779b97f4a7c15ULL + (uint64_t)id->ino;
}

bool file_id_equal(const struct file_id *a, const struct file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

static bool equal_id(const void *a, const void *b)
{
	return file_id_equal(a, b);
}

void links_init(struct links *t)
{
	*t = (struct links){ .files = MAP_INIT(hash_id, equal_id) };
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
}

void links_done(struct links *t)
{
	struct linked *l;

	for (size_t pos = 0; (l = map_next(&t->files, &pos));) {
		node_free(l->node);
		free(l);
	}
	map_done(&t->files);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
}

static struct linked *find_or_add(struct links *t, const struct file_id *id)
{
	struct linked *l = map_get(&t->files, id);
	void *existing;

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->id = *id;
	l->ino = capture_number(t->apart, (uint64_t)id->ino);
	if (map_add(&t->files, &l->id, l, &existing) < 0) {
		free(l);
		return NULL;
	}
	return l;
}

static bool has_stat(const struct linked *l, const struct signature_stat *stat)
{
	if (l->node)
		return memcmp(&l->node->stat, stat, sizeof(*stat)) == 0;
	return l->old && signature_holds(l->old, stat);
}

static uint64_t file_bytes(const struct linked *l)
{
	struct signature s;

	if (!l->node && !l->old)
		return 0;
	linked_signature(l, &s);
	return S_ISREG(s.e.mode) ? s.e.size : 0;
}

int links_find(struct links *t, const struct file_id *id, const struct signature_stat *stat,
	       signature_at old, struct linked **ret, struct err *err)
{
	struct linked *l;
	int r = 1;

	pthread_mutex_lock(&t->lock);
	l = find_or_add(t, id);
	while (l && l->being_read)
		pthread_cond_wait(&t->changed, &t->lock);
	if (!l) {
		r = err_nomem(err);
	} else if (!has_stat(l, stat)) {
		if (!l->node && !l->old && old && signature_holds(old, stat)) {
			l->old = old;
			t->bytes += file_bytes(l);
		} else {
			l->being_read = true;
			r = 0;
		}
	}
	pthread_mutex_unlock(&t->lock);
	*ret = l;
	return r;
}

void links_read(struct links *t, struct linked *l, struct node *n)
{
	LOCKED(&t->lock);
	if (n) {
		t->bytes -= file_bytes(l);
		node_free(l->node);
		l->node = n;
		t->bytes += file_bytes(l);
	}
	l->being_read = false;
	pthread_cond_broadcast(&t->changed);
}

void links_count(struct links *t, struct linked *l)
{
	LOCKED(&t->lock);
	l->names++;
}

void linked_signature(const struct linked *l, struct signature *ret)
{
	if (l->node)
		*ret = (struct signature){
			.stat = &l->node->stat,
			.e = l->node->e,
			.trusted = l->node->trusted,
		};
	else
		signature_decode(l->old, ret);
	ret->e.ino = l->ino;
	ret->linked = l->names > 1;
}

static int compare_links(const void *a, const void *b)
{
	const uint64_t x = (*(const struct linked *const *)a)->ino;
	const uint64_t y = (*(const struct linked *const *)b)->ino;

	return (x > y) - (x < y);
}

int links_put(const struct links *t, struct tree_builder *builder, struct root *root,
	      struct err *err)
{
	AUTO_FREE struct linked **list = calloc(t->files.n + 1, sizeof(struct linked *));
	char name[ROOT_LINK_NAME_SIZE];
	struct signature s;
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
		linked_signature(list[i], &s);
		s.e.name = root_link_name(s.e.ino, name);
		s.e.name_len = strlen(name);
		s.e.nlink = list[i]->names;
		r = tree_builder_add(builder, &s.e, err);
		if (r < 0)
			return r;
	}
	return tree_builder_finish(builder, &root->links, &root->in_links, err);
}
