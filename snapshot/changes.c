/*
 * Two directories at a time, name by name, with a stack of our own: a tree of
 * user-made depth must not decide how deep we recurse.  Equal trees are skipped by
 * their id, unless they name files that stand in the links trees and those differ.
 */
#include "snapshot/changes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cowfs/store/root.h"

enum side { OLD, NEW, SIDES };

struct frame {
	struct tree_iter *it[SIDES];
	struct tree_entry e[SIDES]; /* the next name of each */
	bool end[SIDES];
};

struct walk {
	struct store *store;
	struct root root[SIDES];
	struct frame *stack;
	size_t depth, cap;
	struct buf hold[SIDES]; /* what a file with several names was found in */
	struct changes changes;
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->depth; i++)
		for (int s = 0; s < SIDES; s++)
			tree_iter_free(w->stack[i].it[s]);
	for (int s = 0; s < SIDES; s++)
		buf_done(&w->hold[s]);
	free(w->stack);
}

static int advance(struct frame *f, enum side s, struct err *err)
{
	int r = tree_iter_next(f->it[s], &f->e[s], err);

	f->end[s] = r == 0;
	return r < 0 ? r : 0;
}

static int push(struct walk *w, const struct object_id *old, const struct object_id *new,
		struct err *err)
{
	const struct object_id *const id[SIDES] = { old, new };
	struct frame *f;
	int r = 0;

	if (w->depth == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 16;

		f = reallocarray(w->stack, cap, sizeof(*f));
		if (!f)
			return err_nomem(err);
		w->stack = f;
		w->cap = cap;
	}
	f = &w->stack[w->depth++];
	*f = (struct frame){ 0 };
	for (int s = 0; s < SIDES && r >= 0; s++) {
		r = tree_iter_new(w->store, id[s], &f->it[s], err);
		if (r >= 0)
			r = advance(f, (enum side)s, err);
	}
	return r;
}

static void pop(struct walk *w)
{
	struct frame *f = &w->stack[--w->depth];

	for (int s = 0; s < SIDES; s++)
		tree_iter_free(f->it[s]);
}

static uint64_t names(const struct tree_entry *e)
{
	return e->form == TREE_DIR && e->below.files > 0 ? e->below.files : 1;
}

static bool attributes_differ(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->mode != b->mode || a->uid != b->uid || a->gid != b->gid ||
	       !object_id_equal(&a->xattrs, &b->xattrs);
}

static bool files_differ(const struct tree_entry *a, const struct tree_entry *b)
{
	if (attributes_differ(a, b) || a->rdev != b->rdev)
		return true;
	if (S_ISREG(a->mode)) {
		struct content x = tree_entry_content(a), y = tree_entry_content(b);

		return !content_equal(&x, &y);
	}
	return a->target_len != b->target_len ||
	       (a->target_len > 0 && memcmp(a->target, b->target, a->target_len) != 0);
}

static int compare_dirs(struct walk *w, const struct tree_entry *a, const struct tree_entry *b,
			struct err *err)
{
	bool links = (a->below.links || b->below.links) &&
		     !object_id_equal(&w->root[OLD].links, &w->root[NEW].links);

	w->changes.modified += attributes_differ(a, b);
	if (object_id_equal(&a->id, &b->id) && !links)
		return 0;
	return push(w, &a->id, &b->id, err);
}

/* At most one of them is a directory. */
static int compare_files(struct walk *w, struct tree_entry a, struct tree_entry b, struct err *err)
{
	struct tree_entry *const e[SIDES] = { &a, &b };
	int r;

	if (a.form == TREE_DIR || b.form == TREE_DIR) {
		w->changes.deleted += names(&a);
		w->changes.added += names(&b);
		return 0;
	}
	for (int s = 0; s < SIDES; s++) {
		if (e[s]->form != TREE_LINK)
			continue;
		r = root_link(w->store, &w->root[s], e[s]->ino, e[s], &w->hold[s], err);
		if (r < 0)
			return r;
	}
	w->changes.modified += files_differ(&a, &b);
	return 0;
}

static int step(struct walk *w, struct err *err)
{
	struct frame *f = &w->stack[w->depth - 1];
	struct tree_entry *a = &f->e[OLD], *b = &f->e[NEW];
	struct tree_entry old, new;
	int order, r;

	if (f->end[OLD] && f->end[NEW]) {
		pop(w);
		return 0;
	}
	order = f->end[OLD] ? 1 : f->end[NEW] ? -1 : 0;
	if (order == 0)
		order = tree_name_compare(a->name, a->name_len, b->name, b->name_len);
	if (order < 0) {
		w->changes.deleted += names(a);
		return advance(f, OLD, err);
	}
	if (order > 0) {
		w->changes.added += names(b);
		return advance(f, NEW, err);
	}
	if (a->form != TREE_DIR || b->form != TREE_DIR) {
		r = compare_files(w, *a, *b, err);
		if (r < 0)
			return r;
	}
	/* Pushing may move the frame, so it comes last; of a directory nothing borrowed is used. */
	old = *a;
	new = *b;
	r = advance(f, OLD, err);
	if (r >= 0)
		r = advance(f, NEW, err);
	if (r >= 0 && old.form == TREE_DIR && new.form == TREE_DIR)
		r = compare_dirs(w, &old, &new, err);
	return r;
}

int changes_count(struct store *s, const struct object_id *from, const struct object_id *to,
		  struct changes *ret, struct err *err)
{
	CLEANUP(walk_done) struct walk w = { .store = s };
	int r;

	r = root_get(s, from, &w.root[OLD], err);
	if (r >= 0)
		r = root_get(s, to, &w.root[NEW], err);
	if (r >= 0)
		r = compare_dirs(&w, &w.root[OLD].top, &w.root[NEW].top, err);
	while (r >= 0 && w.depth > 0)
		r = step(&w, err);
	if (r < 0)
		return r;
	*ret = w.changes;
	return 0;
}
