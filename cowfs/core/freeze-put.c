/*
 * freeze-put.c - what was frozen becomes objects, bottom-up.
 */
#include <errno.h>
#include <stdlib.h>

#include "cowfs/core/freeze-i.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-edit.h"
#include "cowfs/store/xattrs.h"

static int put_entry(struct frozen *f, struct batch *b, struct frozen_entry *fe, struct err *err)
{
	int r = 0;

	if (fe->xattrs) {
		r = xattrs_verify(fe->xattrs->data, fe->xattrs->len, err);
		if (r >= 0)
			r = batch_put(b, OBJECT_XATTRS, fe->xattrs->data, fe->xattrs->len,
				      &fe->record.xattrs, err);
	}
	if (r >= 0 && fe->has_file) {
		r = file_store(&fe->file, b, f->l->cache, &fe->content, err);
		if (r >= 0)
			tree_entry_set_content(&fe->record, &fe->content);
	}
	return r;
}

static int compare_entries(const void *a, const void *b)
{
	const struct tree_entry *x = &((const struct frozen_entry *)a)->record;
	const struct tree_entry *y = &((const struct frozen_entry *)b)->record;

	return tree_name_compare(x->name, x->name_len, y->name, y->name_len);
}

/* `at` of the directories in it are places in the list, so it is sorted by pointer. */
static int compare_pointers(const void *a, const void *b)
{
	return compare_entries(*(struct frozen_entry *const *)a, *(struct frozen_entry *const *)b);
}

static int edit_tree(struct frozen *f, struct batch *b, struct frozen_dir *d, struct err *err)
{
	AUTO_FREE struct frozen_entry **order = reallocarray(NULL, d->n + 1, sizeof(*order));
	AUTO_FREE struct tree_change *changes = reallocarray(NULL, d->n + 1, sizeof(*changes));

	if (!order || !changes)
		return err_nomem(err);
	for (size_t i = 0; i < d->n; i++)
		order[i] = &d->list[i];
	qsort(order, d->n, sizeof(*order), compare_pointers);
	for (size_t i = 0; i < d->n; i++)
		changes[i] = (struct tree_change){
			.name = order[i]->record.name,
			.name_len = order[i]->record.name_len,
			.entry = order[i]->node ? &order[i]->record : NULL,
		};
	return tree_edit(b, f->l->cache, &d->base, changes, d->n, &d->id, &d->below, err);
}

static int put_dir(struct frozen *f, struct batch *b, size_t which, struct err *err)
{
	struct frozen_dir *d = &f->dirs[which];
	struct tree_entry *record;
	int r = 0;

	for (size_t i = 0; i < d->n && r >= 0; i++)
		r = put_entry(f, b, &d->list[i], err);
	if (r >= 0)
		r = edit_tree(f, b, d, err);
	if (r >= 0 && which > LINKS) {
		record = &f->dirs[d->in].list[d->at].record;
		record->id = d->id;
		record->below = d->below;
	}
	return r;
}

static int put_root(struct frozen *f, struct batch *b, struct layer_state *ret, struct err *err)
{
	const struct frozen_dir *top = &f->dirs[TOP], *links = &f->dirs[LINKS];
	struct root root = { 0 };
	int r;

	r = put_entry(f, b, &f->top, err);
	if (r < 0)
		return r;
	root.top = f->top.record;
	root.top.id = top->id;
	root.top.below = top->below;
	if (links->below.files > 0) {
		root.links = links->id;
		root.in_links = links->below;
	}
	r = root_put(b, &root, &ret->id, err);
	if (r < 0)
		return r;
	ret->files = top->below.files;
	ret->bytes = top->below.bytes + root.in_links.bytes;
	return 0;
}

int freeze_put(struct frozen *f, struct batch *b, struct layer_state *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->n_strays && r >= 0; i++)
		r = file_store(&f->strays[i].file, b, f->l->cache, &f->strays[i].content, err);
	for (size_t i = f->n; i-- > 0 && r >= 0;)
		r = put_dir(f, b, i, err);
	return r < 0 ? r : put_root(f, b, ret, err);
}
