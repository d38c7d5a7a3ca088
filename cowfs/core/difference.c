#include "cowfs/core/difference-i.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cowfs/core/layer-i.h"

void difference_done(struct difference *d)
{
	for (size_t i = 0; i < d->n; i++) {
		for (size_t k = 0; k < d->dirs[i].n; k++)
			free(d->dirs[i].names[k].name);
		free(d->dirs[i].names);
		free(d->dirs[i].name);
	}
	free(d->dirs);
	*d = (struct difference){ 0 };
}

/* --- how much data there is --------------------------------------------------------------- */

struct trees {
	struct object_id *list; /* owned */
	size_t n, cap;
};

static void trees_done(struct trees *t)
{
	free(t->list);
}

static int trees_add(struct trees *t, const struct object_id *id, struct err *err)
{
	if (!VEC_ROOM(t->list, t->n, t->cap))
		return err_nomem(err);
	t->list[t->n++] = *id;
	return 0;
}

struct sum {
	int64_t data, meta, inodes;
};

static int64_t xattrs_len(struct store *s, const struct object_id *id)
{
	CLEANUP(buf_done) struct buf set = BUF_INIT;

	if (object_id_is_zero(id) || store_get(s, OBJECT_XATTRS, id, &set, NULL) < 0)
		return 0;
	return (int64_t)set.len;
}

/* One entry.  Of a file with several names the file itself is in the links tree. */
static void sum_entry(struct store *s, const struct tree_entry *e, bool in_links, struct sum *sum)
{
	sum->data += (int64_t)e->data;
	if (!in_links)
		sum->meta += charge_of_name(e->name_len);
	if (e->form == TREE_LINK)
		return;
	sum->inodes++;
	sum->meta += charge_of_entry(e) + xattrs_len(s, &e->xattrs);
}

/* What is in one directory; those in it come to the list. */
static int sum_dir(struct store *s, const struct object_id *id, struct trees *todo, struct sum *sum,
		   struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	int r = tree_iter_new(s, id, &it, err);

	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		sum_entry(s, &e, false, sum);
		if (e.form == TREE_DIR)
			r = trees_add(todo, &e.id, err);
	}
	return r;
}

/*
 * An entry that comes (1) or goes (-1), with all below it; hard links count in their own tree.
 * Where a tree is damaged the sum is too small: that must not stand in the way of going back.
 */
static void count_data(struct difference *d, struct store *s, const struct tree_entry *e,
		       bool in_links, int sign)
{
	CLEANUP(trees_done) struct trees todo = { 0 };
	struct sum sum = { 0 };
	struct object_id id;
	int r = 0;

	sum_entry(s, e, in_links, &sum);
	if (e->form == TREE_DIR)
		r = trees_add(&todo, &e->id, NULL);
	while (r >= 0 && todo.n > 0) {
		id = todo.list[--todo.n];
		r = sum_dir(s, &id, &todo, &sum, NULL);
	}
	d->grown += sign * sum.data;
	d->meta += sign * sum.meta;
	d->inodes += sign * sum.inodes;
}

/* --- what differs ------------------------------------------------------------------------- */

/* From `a` to `b`; one of them may be NULL. */
static int add_name(struct difference *d, size_t which, const struct tree_entry *a,
		    const struct tree_entry *b, struct err *err)
{
	const struct tree_entry *e = a ? a : b;
	struct different_dir *dir = &d->dirs[which];
	struct different_name *n;

	if (!VEC_ROOM(dir->names, dir->n, dir->cap))
		return err_nomem(err);
	n = &dir->names[dir->n];
	*n = (struct different_name){ .was = a ? a->mode : 0, .is = b ? b->mode : 0 };
	n->name = strndup(e->name, e->name_len);
	if (!n->name)
		return err_nomem(err);
	dir->n++;
	return 0;
}

static int add_dir(struct difference *d, size_t in, const char *name, size_t name_len,
		   const struct object_id *from, const struct tree_entry *to, struct err *err)
{
	struct different_dir *dir;

	if (!VEC_ROOM(d->dirs, d->n, d->cap))
		return err_nomem(err);
	dir = &d->dirs[d->n];
	*dir = (struct different_dir){ .in = in, .from = *from, .to = *to };
	dir->to.name = NULL;
	dir->to.target = NULL;
	if (name) {
		dir->name = strndup(name, name_len);
		if (!dir->name)
			return err_nomem(err);
	}
	d->n++;
	return 0;
}

/* One side of a comparison: the entry it stands at. */
struct side {
	struct tree_iter *it;
	struct tree_entry e;
	bool at_end;
};

static void side_done(struct side *s)
{
	tree_iter_free(s->it);
}

static int side_step(struct side *s, struct err *err)
{
	int r = s->it ? tree_iter_next(s->it, &s->e, err) : 0;

	s->at_end = r == 0;
	return r < 0 ? r : 0;
}

static int side_begin(struct side *s, struct store *store, const struct object_id *tree,
		      struct err *err)
{
	s->at_end = true;
	return object_id_is_zero(tree) ? 0 : tree_iter_new(store, tree, &s->it, err);
}

static int order(const struct side *a, const struct side *b)
{
	if (a->at_end || b->at_end)
		return (int)a->at_end - (int)b->at_end;
	return tree_name_compare(a->e.name, a->e.name_len, b->e.name, b->e.name_len);
}

/* To the next names, and over what is the same on both sides. */
static int both_step(struct side *a, struct side *b, struct err *err)
{
	int r;

	if (a->it && b->it)
		tree_iter_skip_same(a->it, b->it);
	r = side_step(a, err);
	return r < 0 ? r : side_step(b, err);
}

/* On one side only, or another file. */
static int compare_names(struct difference *d, struct store *s, size_t which,
			 const struct tree_entry *a, const struct tree_entry *b, struct err *err)
{
	if (a)
		count_data(d, s, a, which == DIFFERENCE_LINKS, -1);
	if (b)
		count_data(d, s, b, which == DIFFERENCE_LINKS, 1);
	return add_name(d, which, a, b, err);
}

static int compare_both(struct difference *d, struct store *s, size_t which,
			const struct tree_entry *a, const struct tree_entry *b, struct err *err)
{
	if (tree_entry_equal(a, b))
		return 0;
	if (a->form == TREE_DIR && b->form == TREE_DIR) {
		d->meta += xattrs_len(s, &b->xattrs) - xattrs_len(s, &a->xattrs);
		return add_dir(d, which, a->name, a->name_len, &a->id, b, err);
	}
	return compare_names(d, s, which, a, b, err);
}

static int compare_dir(struct difference *d, struct store *s, size_t which, struct err *err)
{
	CLEANUP(side_done) struct side a = { 0 };
	CLEANUP(side_done) struct side b = { 0 };
	int r, side;

	if (object_id_equal(&d->dirs[which].from, &d->dirs[which].to.id))
		return 0;
	r = side_begin(&a, s, &d->dirs[which].from, err);
	if (r < 0)
		return r;
	r = side_begin(&b, s, &d->dirs[which].to.id, err);
	if (r < 0)
		return r;
	r = both_step(&a, &b, err);
	if (r < 0)
		return r;
	while (r >= 0 && !(a.at_end && b.at_end)) {
		side = order(&a, &b);
		if (side == 0)
			r = compare_both(d, s, which, &a.e, &b.e, err);
		else
			r = compare_names(d, s, which, side < 0 ? &a.e : NULL,
					  side > 0 ? &b.e : NULL, err);
		if (r < 0)
			return r;
		r = side == 0 ? both_step(&a, &b, err) : side_step(side < 0 ? &a : &b, err);
	}
	return r;
}

static int find_differences(struct difference *d, struct store *s, struct err *err)
{
	struct tree_entry links = { .form = TREE_DIR, .id = d->to.links, .below = d->to.in_links };
	int r = add_dir(d, DIFFERENCE_TOP, NULL, 0, &d->from.top.id, &d->to.top, err);

	if (r < 0)
		return r;
	r = add_dir(d, DIFFERENCE_LINKS, NULL, 0, &d->from.links, &links, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < d->n; i++)
		r = compare_dir(d, s, i, err);
	return r;
}

int difference_find(struct store *s, const struct object_id *from, const struct object_id *to,
		    struct difference *ret, struct err *err)
{
	CLEANUP(difference_done) struct difference d = { 0 };
	int r = root_get(s, from, &d.from, err);

	if (r < 0)
		return r;
	r = root_get(s, to, &d.to, err);
	if (r < 0)
		return r;
	r = find_differences(&d, s, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(d);
	return 0;
}
