/*
 * A directory whose names are all unchanged keeps its tree: nothing is built, and the store is not
 * asked.  Otherwise the tree is built from what was read and, for unchanged names, from their
 * signatures.
 */
#include <string.h>

#include "base/vec.h"
#include "snapshot/capture/capture-i.h"

/* A name with all that is known of it.  Everything is borrowed. */
static void describe(const struct item *item, struct signature *ret)
{
	if (item->kind == ITEM_LINKED) {
		linked_signature(item->linked, ret);
	} else if (item->node) {
		*ret = (struct signature){
			.stat = &item->node->stat,
			.e = item->node->e,
			.trusted = item->node->trusted,
			.whole = item->node->whole,
			.record = item->node->record,
		};
		ret->e.ino = item->ino;
	} else {
		signature_decode(item->old, ret);
		ret->record |= SIGNATURES_OLD;
		ret->e.ino = item->ino;
	}
	ret->e.name = item->name;
	ret->e.name_len = item->name_len;
}

/* Which parts of a directory are unchanged. */
struct sameness {
	bool tree;
	bool record; /* and nothing else changed that signatures hold */
};

/* In a tree a linked file is no more than its number. */
static bool same_in_tree(const struct signature *a, const struct signature *b)
{
	if (a->linked != b->linked)
		return false;
	if (a->linked)
		return a->e.ino == b->e.ino && (a->e.mode & S_IFMT) == (b->e.mode & S_IFMT);
	return tree_entry_equal(&a->e, &b->e);
}

static void compare_item(const struct walk *w, const struct item *item, struct sameness *s)
{
	struct signature now, old;

	if (!w->careful && item->kind != ITEM_LINKED && item->old && !item->node)
		return;
	s->record &= item->old != NULL;
	s->tree &= item->old != NULL;
	if (!s->record && !s->tree)
		return;
	describe(item, &now);
	signature_decode(item->old, &old);
	s->tree &= same_in_tree(&now, &old);
	s->record &= s->tree && now.trusted == old.trusted && now.whole == old.whole &&
		     (now.record & ~SIGNATURES_OLD) == old.record &&
		     (item->kind != ITEM_DIR || (now.record & SIGNATURES_OLD)) &&
		     tree_entry_equal(&now.e, &old.e) &&
		     memcmp(now.stat, old.stat, sizeof(*now.stat)) == 0;
}

static struct sameness compare(const struct walk *w, const struct dir *d)
{
	struct sameness s = { d->has_old, d->has_old };
	size_t present = 0;

	for (size_t i = 0; i < d->n_items; i++) {
		if (d->items[i].kind == ITEM_ABSENT)
			continue;
		present++;
		compare_item(w, &d->items[i], &s);
	}
	s.tree &= present == d->n_old;
	s.record &= present == d->n_old;
	return s;
}

static int build(struct worker *k, struct dir *d, struct tree_entry *self, struct err *err)
{
	int r;

	self->nlink = 2;
	for (size_t i = 0; i < d->n_items; i++) {
		struct signature s;

		if (d->items[i].kind == ITEM_ABSENT)
			continue;
		describe(&d->items[i], &s);
		self->nlink += s.e.form == TREE_DIR;
		if (s.linked)
			s.e = (struct tree_entry){
				.name = s.e.name,
				.name_len = s.e.name_len,
				.form = TREE_LINK,
				.mode = s.e.mode & S_IFMT,
				.ino = s.e.ino,
			};
		r = tree_builder_add(k->builder, &s.e, err);
		if (r < 0)
			return r;
	}
	return tree_builder_finish(k->builder, &self->id, &self->below, err);
}

/* An unchanged entry is copied as it is. */
static int append_entry(struct buf *out, const struct item *item, bool careful)
{
	struct signature s;

	if (!careful && item->kind == ITEM_FILE && !item->node)
		return signature_append_old(out, item->old, 0);
	describe(item, &s);
	return signature_append(out, &s);
}

static int write_record(struct worker *k, const struct dir *d, uint64_t *ret, struct err *err)
{
	uint32_t n = 0;
	int r;

	for (size_t i = 0; i < d->n_items; i++)
		n += d->items[i].kind != ITEM_ABSENT;
	buf_reset(&k->record);
	r = signature_append_count(&k->record, n);
	for (size_t i = 0; r >= 0 && i < d->n_items; i++)
		if (d->items[i].kind != ITEM_ABSENT)
			r = append_entry(&k->record, &d->items[i], k->walk->careful);
	if (r < 0 || signatures_draft_add(k->walk->draft, &k->record, ret) < 0)
		return err_nomem(err);
	return 0;
}

/* The tree of last time. */
static void take_over(struct tree_entry *self, signature_at at)
{
	struct signature old;

	signature_decode(at, &old);
	self->id = old.e.id;
	self->below = old.e.below;
	self->nlink = old.e.nlink;
}

/* Does the record name all that was listed? */
static bool is_whole(const struct dir *d)
{
	return VEC_ALL(it, d->items, d->n_items, it->kind != ITEM_ABSENT);
}

static int put_tree_and_record(struct worker *k, struct dir *d, const struct sameness *same,
			       struct err *err)
{
	struct node *n = d->item->node;
	int r = 0;

	if (same->tree)
		take_over(&n->e, d->item->old);
	else
		r = build(k, d, &n->e, err);
	if (r < 0)
		return r;
	if (!same->record)
		return write_record(k, d, &n->record, err);
	n->record = d->old_record | SIGNATURES_OLD;
	return 0;
}

int put_dir(struct worker *k, struct dir *d, struct err *err)
{
	const struct sameness same = compare(k->walk, d);
	struct item *item = d->item;
	struct node *n = item->node;
	struct signature old;
	int r;

	n->dir = NULL;
	n->whole = is_whole(d);
	r = put_tree_and_record(k, d, &same, err);
	if (r < 0)
		return dir_fail(k->walk->path, d, NULL, r, err);
	if (!same.record || !signature_holds(item->old, &n->stat))
		return 0;
	signature_decode(item->old, &old);
	if (old.e.ino == item->ino && old.whole == n->whole) {
		item->node = NULL;
		node_free(n);
	}
	return 0;
}
