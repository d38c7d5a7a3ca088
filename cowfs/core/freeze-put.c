/*
 * freeze-put.c - frozen changes become objects, bottom-up.
 *
 * Bytes and attributes go first, then directories. No file names another one. Directories after the
 * parent of the last one in the list are not inside each other, so they can be put in any order,
 * and several threads do that if a caller waits for the end. A background put checks now and then
 * whether a caller now waits.
 */
#include <stdlib.h>

#include "base/crew.h"
#include "cowfs/core/freeze-i.h"
#include "cowfs/store/root.h"
#include "cowfs/store/tree-edit.h"
#include "cowfs/store/xattrs.h"

static int put_entry(struct frozen *f, struct batch *b, struct frozen_entry *fe, struct err *err)
{
	int r = 0;

	if (fe->xattrs) {
		r = xattrs_verify(fe->xattrs->data, fe->xattrs->len, err);
		if (r < 0)
			return r;
		r = batch_put(b, OBJECT_XATTRS, fe->xattrs->data, fe->xattrs->len,
			      &fe->record.xattrs, err);
	}
	if (r < 0)
		return r;
	if (fe->has_file) {
		r = file_store(&fe->file, b, f->l->cache, &fe->content, err);
		if (r < 0)
			return r;
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

/* The first two are frozen whether or not a name in them changed; no root names links that are none. */
static bool is_as_it_was(const struct frozen_dir *d, size_t which)
{
	return d->n == 0 && (which == LINKS || !object_id_is_zero(&d->base));
}

static int put_dir(struct frozen *f, struct batch *b, size_t which, struct err *err)
{
	struct frozen_dir *d = &f->dirs[which];
	struct tree_entry *record;
	int r = 0;

	if (is_as_it_was(d, which))
		d->id = d->base;
	else
		r = edit_tree(f, b, d, err);
	if (r < 0)
		return r;
	if (which > LINKS) {
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
	int r = put_entry(f, b, &f->top, err);

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

/* --- all of it --------------------------------------------------------------------------- */

/* A background put checks after so many objects whether a caller now waits for it. */
#define LOOK_EACH 256

struct putting {
	struct frozen *f;
	struct batch *b;
	bool waited;
	struct frozen_entry **bodies; /* owned; entries with bytes or attributes to put */
	size_t n_bodies;
	size_t from; /* what is put now begins there, in its list */
	crew_fn put; /* one of it */
};

static void putting_done(struct putting *p)
{
	free(p->bodies);
}

/* Writers wait for the thread that makes room. */
static bool is_waited(const struct putting *p)
{
	const struct layer *l = p->f->l;

	return p->waited || l->waiting > 0 || layers_pressed(l->all);
}

/* The caller counts its own time; only we see how long the other threads take. */
static int put_at(unsigned member, size_t i, void *ctx, struct err *err)
{
	const struct putting *p = ctx;
	const uint64_t begun = member > 0 ? traffic_work_now() : 0;
	int r = p->put(member, i, ctx, err);

	if (member > 0)
		traffic_worked(p->f->l, begun);
	return r;
}

/* Those of a list from `from` up to `end`. */
static int each(struct putting *p, size_t from, size_t end, crew_fn fn, struct err *err)
{
	size_t n;
	int r = 0;

	p->put = fn;
	for (p->from = from; p->from < end && r >= 0; p->from += n) {
		const bool waited = is_waited(p);

		n = end - p->from;
		if (!waited && n > LOOK_EACH)
			n = LOOK_EACH;
		r = crew_each(waited ? crew_size(n) : 1, n, put_at, p, err);
	}
	return r;
}

static int put_stray_at(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct putting *p = ctx;
	struct frozen_stray *s = &p->f->strays[p->from + i];

	return file_store(&s->file, p->b, p->f->l->cache, &s->content, err);
}

static int put_body_at(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct putting *p = ctx;

	return put_entry(p->f, p->b, p->bodies[p->from + i], err);
}

static int put_dir_at(unsigned member, size_t i, void *ctx, struct err *err)
{
	struct putting *p = ctx;

	return put_dir(p->f, p->b, p->from + i, err);
}

static int find_bodies(struct putting *p, struct err *err)
{
	const struct frozen *f = p->f;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->dirs[i].n;
	p->bodies = reallocarray(NULL, n + 1, sizeof(struct frozen_entry *));
	if (!p->bodies)
		return err_nomem(err);
	for (size_t i = 0; i < f->n; i++)
		for (size_t j = 0; j < f->dirs[i].n; j++)
			if (f->dirs[i].list[j].has_file || f->dirs[i].list[j].xattrs)
				p->bodies[p->n_bodies++] = &f->dirs[i].list[j];
	return 0;
}

/*
 * A few blocks in a few files, as a program leaves between two calls of fsync.  Most of them are new,
 * and so are the directories above them.  A block that is stored already is packed in vain, and
 * counts as appended until the next gc: that costs less than looking for each.
 */
#define FEW_BLOCKS 8
#define FEW_DIRS   32

static bool is_likely_new(const struct putting *p)
{
	size_t blocks = 0;

	for (size_t i = 0; i < p->n_bodies && blocks <= FEW_BLOCKS; i++)
		blocks += 1 + p->bodies[i]->file.n;
	return blocks <= FEW_BLOCKS && p->f->n_strays == 0 && p->f->n <= FEW_DIRS;
}

/* Each time all those behind the one that the last is in. */
static int put_dirs(struct putting *p, struct err *err)
{
	size_t first, end;
	int r = 0;

	for (end = p->f->n; end > TOP + 1 && r >= 0; end = first) {
		first = p->f->dirs[end - 1].in + 1;
		r = each(p, first, end, put_dir_at, err);
	}
	return r < 0 ? r : put_dir(p->f, p->b, TOP, err);
}

int freeze_put(struct frozen *f, struct batch *b, bool waited, struct layer_state *ret,
	       struct err *err)
{
	CLEANUP(putting_done) struct putting p = { .f = f, .b = b, .waited = waited };
	int r = find_bodies(&p, err);

	if (r < 0)
		return r;
	if (is_likely_new(&p))
		batch_expect_new(b);
	r = each(&p, 0, f->n_strays, put_stray_at, err);
	if (r < 0)
		return r;
	r = each(&p, 0, p.n_bodies, put_body_at, err);
	if (r < 0)
		return r;
	r = put_dirs(&p, err);
	return r < 0 ? r : put_root(f, b, ret, err);
}
