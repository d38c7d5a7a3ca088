/*
 * entry.c - names in memory: what they lead to, and how they differ from the stored ones.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/core/layer-i.h"

int entry_new(struct node *dir, const char *name, bool stored, struct entry **ret)
{
	const size_t len = strlen(name);
	struct entry *e = calloc(1, sizeof(*e) + len + 1);
	int r;

	if (!e)
		return -ENOMEM;
	e->dir = dir;
	e->stored = stored;
	memcpy(e->name, name, len + 1);
	r = map_add(&dir->dir.entries, e->name, e, NULL);
	if (r < 0) {
		free(e);
		return r;
	}
	dir->dir.hidden += stored;
	*ret = e;
	return 0;
}

/* Count how it differs from what is stored, or no longer. */
static void count(struct entry *e, int n)
{
	struct dir *d = &e->dir->dir;

	if (e->stored && !e->node)
		d->hidden += (size_t)n;
	if (!e->stored && e->node)
		d->added += (size_t)n;
}

static void leave_node(struct layer *l, struct entry *e)
{
	if (!e->node)
		return;
	if (e->dir == l->links) {
		e->node->linked = NULL;
	} else {
		*e->at = e->next;
		if (e->next)
			e->next->at = e->at;
	}
	e->node = NULL;
}

static void join_node(struct layer *l, struct entry *e, struct node *n)
{
	e->node = n;
	if (e->dir == l->links) {
		n->linked = e;
		return;
	}
	e->next = n->names;
	e->at = &n->names;
	if (e->next)
		e->next->at = &e->next;
	n->names = e;
}

void entry_point(struct layer *l, struct entry *e, struct node *n)
{
	count(e, -1);
	leave_node(l, e);
	if (n)
		join_node(l, e, n);
	count(e, 1);
}

void entry_set(struct layer *l, struct entry *e, struct node *n)
{
	entry_point(l, e, n);
	e->dir->dir.version++;
	entry_mark(l, e);
}

void entry_set_stored(struct entry *e, bool stored)
{
	count(e, -1);
	e->stored = stored;
	count(e, 1);
}

/* What an entry that is not persisted takes, in memory and on the disk; most take less. */
#define ENTRY_DIRTY 512

void entry_unmark(struct layer *l, struct entry *e)
{
	if (!e->marked)
		return;
	e->marked = false;
	layer_count(l, -ENTRY_DIRTY);
}

void entry_mark(struct layer *l, struct entry *e)
{
	e->changed = l->generation;
	atomic_store_explicit(&l->changed_at, layers_clock(), memory_order_relaxed);
	/* Up to the first that is marked: those above it are too. */
	while (e && !e->marked) {
		struct dir *d = &e->dir->dir;

		e->marked = true;
		atomic_fetch_add_explicit(&l->marks, 1, memory_order_relaxed);
		layer_count(l, ENTRY_DIRTY);
		e->next_marked = d->marked;
		d->marked = e;
		if (!e->dir->names)
			layer_mark(l);
		e = e->dir->names;
	}
}

void entry_free(struct layer *l, struct entry *e)
{
	assert(!e->marked);
	count(e, -1);
	leave_node(l, e);
	map_remove(&e->dir->dir.entries, e->name);
	free(e);
}
