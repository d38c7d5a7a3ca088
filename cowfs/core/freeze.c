/*
 * freeze.c - changes of a layer become objects, while it continues to change.
 *
 * Collecting visits marked directories only and shares the blocks of files, so it is quick and in
 * O(changed). Putting (freeze-put.c) works only on what was collected. Settling finds everything
 * that has not changed since: it equals the stored form now, and its memory goes. Later changes
 * have a later generation and stay marked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/core/freeze-i.h"
#include "cowfs/store/root.h"

static void frozen_free(struct frozen *f)
{
	if (!f)
		return;
	VEC_FREE(it, f->dirs, f->n, free(it->list));
	free(f->strays);
	free(f);
}

/* --- collecting ------------------------------------------------------------------------- */

static int freeze_file(struct node *n, struct frozen_entry *fe)
{
	int r;

	if (file_is_stored(&n->file)) {
		tree_entry_set_content(&fe->record, &n->file.base);
		return 0;
	}
	r = file_freeze(&n->file, &fe->file);
	fe->has_file = r >= 0;
	return r;
}

static int freeze_xattrs(const struct node *n, struct frozen_entry *fe)
{
	fe->record.xattrs = n->xattrs;
	if (!n->new_xattrs || n->new_xattrs->len == 0)
		return 0;
	fe->xattrs = calloc(1, sizeof(*fe->xattrs));
	if (!fe->xattrs)
		return -ENOMEM;
	return buf_append(fe->xattrs, n->new_xattrs->data, n->new_xattrs->len);
}

/* Everything that stat(2) shows, and what kind of content. */
static int freeze_node(struct node *n, bool in_links, struct frozen_entry *fe)
{
	struct tree_entry *e = &fe->record;
	int r;

	e->mode = n->mode;
	e->uid = n->uid;
	e->gid = n->gid;
	e->ino = n->ino;
	e->mtime_s = n->mtime.tv_sec;
	e->mtime_ns = (uint32_t)n->mtime.tv_nsec;
	e->ctime_s = n->ctime.tv_sec;
	e->ctime_ns = (uint32_t)n->ctime.tv_nsec;
	e->rdev = n->rdev;
	if (in_links || (node_is_dir(n) && n->nlink > 1))
		e->nlink = n->nlink;
	r = freeze_xattrs(n, fe);
	if (r < 0)
		return r;
	if (S_ISREG(n->mode))
		return freeze_file(n, fe);
	if (S_ISLNK(n->mode)) {
		e->target = n->target;
		e->target_len = strlen(n->target);
		e->size = e->target_len;
	} else if (node_is_dir(n)) {
		e->form = TREE_DIR;
		e->id = n->dir.base;
		e->below = n->dir.below;
	}
	return 0;
}

static int freeze_entry(struct layer *l, struct entry *e, struct frozen_entry *fe)
{
	struct node *n = e->node;

	fe->entry = e;
	fe->record.name = e->name;
	fe->record.name_len = strlen(e->name);
	if (!n)
		return 0;
	fe->node = n;
	n->pins++;
	if (n->linked && e->dir != l->links) {
		fe->record.form = TREE_LINK;
		fe->record.ino = n->ino;
		fe->record.mode = n->mode & S_IFMT;
		return 0;
	}
	return freeze_node(n, e->dir == l->links, fe);
}

static int add_dir(struct frozen *f, struct node *dir, size_t in, size_t at)
{
	if (!VEC_ROOM(f->dirs, f->n, f->cap))
		return -ENOMEM;
	f->dirs[f->n++] = (struct frozen_dir){
		.node = dir,
		.base = dir->dir.base,
		.below = dir->dir.below,
		.in = in,
		.at = at,
	};
	dir->pins++;
	return 0;
}

/* The marked entries of one directory, and the directories among them. */
static int freeze_dir(struct frozen *f, size_t which)
{
	struct node *dir = f->dirs[which].node;
	struct frozen_entry *list;
	size_t n = 0;
	int r = 0;

	for (const struct entry *e = dir->dir.marked; e; e = e->next_marked)
		n++;
	if (n == 0)
		return 0;
	list = calloc(n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	f->dirs[which].list = list;
	for (struct entry *e = dir->dir.marked; e && r >= 0; e = e->next_marked) {
		const size_t at = f->dirs[which].n++;
		struct node *child = e->node;

		r = freeze_entry(f->l, e, &list[at]);
		if (r < 0)
			return r;
		if (child && node_is_dir(child) &&
		    (child->dir.marked || object_id_is_zero(&child->dir.base)))
			r = add_dir(f, child, which, at);
	}
	return r;
}

static int freeze_strays(struct frozen *f)
{
	struct layer *l = f->l;
	size_t n = 0;
	int r = 0;

	if (!layers_pressed(l->all))
		return 0;
	for (const struct node *s = l->strays; s; s = s->next_stray)
		n++;
	f->strays = n ? calloc(n, sizeof(*f->strays)) : NULL;
	if (n > 0 && !f->strays)
		return -ENOMEM;
	while (r >= 0 && l->strays) {
		struct node *s = l->strays;

		r = file_freeze(&s->file, &f->strays[f->n_strays].file);
		if (r < 0)
			break;
		f->strays[f->n_strays++].node = s;
		s->pins++;
		node_leave_strays(s);
	}
	return r;
}

static int collect(struct frozen *f)
{
	struct layer *l = f->l;
	int r;

	f->top.record.name = ROOT_TOP;
	f->top.record.name_len = strlen(ROOT_TOP);
	r = freeze_node(l->top, false, &f->top);
	if (r < 0)
		return r;
	r = add_dir(f, l->top, 0, 0);
	if (r < 0)
		return r;
	r = add_dir(f, l->links, 0, 0);
	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < f->n; i++)
		r = freeze_dir(f, i);
	return r < 0 ? r : freeze_strays(f);
}

int freeze_collect(struct layer *l, struct frozen **ret)
{
	struct frozen *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->l = l;
	f->generation = l->generation++;
	l->marks = 0;
	r = collect(f);
	if (r < 0) {
		freeze_settle(l, f, false);
		return r;
	}
	*ret = f;
	return 0;
}

/* --- settling --------------------------------------------------------------------------- */

/* `reached`: what was stored of it is in the new root. */
static void settle_file(struct layer *l, struct node *n, const struct file *frozen,
			const struct content *stored, bool reached)
{
	const uint64_t before = n->file.data;
	int64_t grown = 0;

	/* It was emptied since, and may stand on something else that is kept for it. */
	if (n->file.low == 0)
		return;
	file_settle(&n->file, frozen, stored, &grown);
	layer_count(l, grown);
	node_count_data(l, n, before);
	if (reached && !node_has_no_name(n))
		node_unkeep(l, n);
	else
		node_keep(l, n);
}

static void settle_node(struct layer *l, const struct frozen *f, const struct frozen_entry *fe)
{
	struct node *n = fe->node;

	if (fe->has_file)
		settle_file(l, n, &fe->file, &fe->content, true);
	if (fe->record.form == TREE_LINK || n->changed > f->generation)
		return;
	if (!node_has_no_name(n))
		node_unkeep(l, n);
	if (n->new_xattrs) {
		layer_count(l, node_dirty_xattrs(n->new_xattrs, NULL));
		xattr_set_free(n->new_xattrs);
		n->new_xattrs = NULL;
		n->xattrs = fe->record.xattrs;
	}
}

/* Does the stored entry say all that there is to say? */
static bool is_settled(const struct layer *l, const struct frozen *f, const struct entry *e)
{
	const struct node *n = e->node;

	if (e->changed > f->generation)
		return false;
	if (!n || (n->linked && e->dir != l->links))
		return true;
	return n->changed <= f->generation && !(node_is_dir(n) && n->dir.marked);
}

static void settle_entry(struct layer *l, const struct frozen *f, struct frozen_entry *fe)
{
	entry_set_stored(fe->entry, fe->node != NULL);
	if (fe->node)
		settle_node(l, f, fe);
}

/* Unmark what is settled and let go of what nobody needs. */
static void sift_marked(struct layer *l, const struct frozen *f, struct node *dir)
{
	struct entry *e = dir->dir.marked, *next;

	dir->dir.marked = NULL;
	for (; e; e = next) {
		next = e->next_marked;
		if (is_settled(l, f, e)) {
			entry_unmark(l, e);
			if (!e->node)
				entry_free(l, e);
			continue;
		}
		e->next_marked = dir->dir.marked;
		dir->dir.marked = e;
	}
}

static void release_entry(struct layer *l, struct frozen_entry *fe)
{
	if (fe->has_file)
		file_done(&fe->file);
	if (fe->xattrs)
		buf_done(fe->xattrs);
	free(fe->xattrs);
	if (fe->node) {
		fe->node->pins--;
		node_release(l, fe->node);
	}
}

/* Nothing reaches the tree of hard links if there are none. */
static void settle_base(const struct layer *l, const struct frozen_dir *d)
{
	static const struct object_id none;

	d->node->dir.base = d->node == l->links && d->below.files == 0 ? none : d->id;
	d->node->dir.below = d->below;
}

static void settle_dir(struct layer *l, struct frozen *f, struct frozen_dir *d, bool stored)
{
	if (stored) {
		settle_base(l, d);
		for (size_t i = 0; i < d->n; i++)
			settle_entry(l, f, &d->list[i]);
		sift_marked(l, f, d->node);
	}
	for (size_t i = 0; i < d->n; i++)
		release_entry(l, &d->list[i]);
	d->node->pins--;
	node_release(l, d->node);
}

static void settle_stray(struct layer *l, struct frozen_stray *s, bool stored)
{
	if (stored) {
		settle_file(l, s->node, &s->file, &s->content, false);
	} else if (node_has_no_name(s->node)) {
		node_mark(l, s->node);
	}
	file_done(&s->file);
	s->node->pins--;
	node_release(l, s->node);
}

static void settle_top(struct layer *l, struct frozen *f, bool stored)
{
	f->top.node = l->top;
	l->top->pins++;
	if (stored)
		settle_node(l, f, &f->top);
	release_entry(l, &f->top);
}

void freeze_settle(struct layer *l, struct frozen *f, bool stored)
{
	for (size_t i = 0; i < f->n_strays; i++)
		settle_stray(l, &f->strays[i], stored);
	for (size_t i = f->n; i-- > 0;)
		settle_dir(l, f, &f->dirs[i], stored);
	settle_top(l, f, stored);
	if (stored)
		l->marked = l->top->dir.marked || l->links->dir.marked ||
			    l->top->changed > f->generation ||
			    (l->strays && layers_pressed(l->all));
	l->dirty_since = l->marked ? layers_clock() : 0;
	frozen_free(f);
}
