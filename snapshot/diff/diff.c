/*
 * Two directories at a time, name by name, with a stack of our own: a tree of user-made depth must
 * not decide how deep we recurse. If only one side has a directory, the other counts as empty.
 * Equal trees are skipped by their id, unless they name files in the links trees and those differ.
 */
#include "snapshot/diff/diff.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum side { OLD, NEW, SIDES };

struct frame {
	struct tree_iter *it[SIDES]; /* NULL if that side lacks the directory */
	struct tree_entry e[SIDES];  /* the next name of each */
	bool end[SIDES];
	size_t path_len; /* of the directory */
	struct object_id id[SIDES];
	bool twins; /* both sides have it, and nothing differs in what was seen of it */
};

struct walk {
	struct store *store;
	const struct diff_options *options;
	diff_fn fn;
	void *ctx;
	struct root root[SIDES];
	struct frame *stack;
	size_t depth, cap;
	struct buf path;
	struct buf hold[SIDES]; /* what a file with several names was found in */
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->depth; i++)
		for (int s = 0; s < SIDES; s++)
			tree_iter_free(w->stack[i].it[s]);
	for (int s = 0; s < SIDES; s++)
		buf_done(&w->hold[s]);
	buf_done(&w->path);
	free(w->stack);
}

/* --- directories ------------------------------------------------------------------------ */

static int advance(struct frame *f, enum side s, struct err *err)
{
	int r = f->it[s] ? tree_iter_next(f->it[s], &f->e[s], err) : 0;

	f->end[s] = r == 0;
	return r < 0 ? r : 0;
}

/* Advance the given sides; where both advance, skip what is equal. */
static int advance_sides(const struct walk *w, struct frame *f, const bool goes[SIDES],
			 struct err *err)
{
	int r = 0;

	/* A file with several names may differ though its entry does not. */
	if (goes[OLD] && goes[NEW] && f->it[OLD] && f->it[NEW] &&
	    object_id_equal(&w->root[OLD].links, &w->root[NEW].links))
		tree_iter_skip_same(f->it[OLD], f->it[NEW]);
	for (int s = 0; s < SIDES && r >= 0; s++)
		r = goes[s] ? advance(f, (enum side)s, err) : 0;
	return r;
}

/* Name the directory whose path has that length in the error. */
static int unreadable(struct walk *w, size_t path_len, int r, struct err *err)
{
	if (path_len == 0)
		return err_wrap(err, r, "the top directory");
	return err_wrap(err, r, "directory '%.*s'", (int)path_len, (const char *)w->path.data);
}

/* Either may be NULL.  w->path is the directory. */
static int open_sides(struct walk *w, struct frame *f, const struct object_id *const id[SIDES],
		      struct err *err)
{
	const bool both[SIDES] = { true, true };
	int r = 0;

	for (int s = 0; s < SIDES && r >= 0; s++)
		if (id[s])
			r = tree_iter_new(w->store, id[s], &f->it[s], err);
	return r < 0 ? r : advance_sides(w, f, both, err);
}

/* A file with several names is in the links tree, of which the ids of directories say nothing. */
static bool can_be_twins(const struct tree_entry *a, const struct tree_entry *b)
{
	return a && b && !a->below.links && !b->below.links;
}

static int push(struct walk *w, const struct tree_entry *old, const struct tree_entry *new,
		struct err *err)
{
	const struct object_id *const id[SIDES] = { old ? &old->id : NULL, new ? &new->id : NULL };
	struct frame *f;
	int r;

	if (!VEC_ROOM(w->stack, w->depth, w->cap))
		return err_nomem(err);
	f = &w->stack[w->depth++];
	*f = (struct frame){ .path_len = w->path.len, .twins = can_be_twins(old, new) };
	for (int s = 0; f->twins && s < SIDES; s++)
		f->id[s] = *id[s];
	r = open_sides(w, f, id, err);
	return r < 0 ? unreadable(w, f->path_len, r, err) : r;
}

static void note_difference(struct walk *w)
{
	if (w->depth > 0)
		w->stack[w->depth - 1].twins = false;
}

/* All of it was seen. */
static void pop(struct walk *w)
{
	const struct diff_options *o = w->options;
	struct frame *f = &w->stack[--w->depth];

	for (int s = 0; s < SIDES; s++)
		tree_iter_free(f->it[s]);
	if (!f->twins)
		note_difference(w);
	else if (o->twins && o->mtimes && !o->kept)
		twins_add(o->twins, &f->id[OLD], &f->id[NEW]);
}

/* --- comparing -------------------------------------------------------------------------- */

/* Of a file; one that was lost stays a promise. */
static int find_content(const struct walk *w, const struct tree_entry *e, struct content *ret,
			struct err *err)
{
	struct content kept;
	int r;

	*ret = tree_entry_content(e);
	if (e->form != TREE_LAZY || !w->options->kept)
		return 0;
	r = w->options->kept(&e->id, &kept, w->options->kept_ctx, err);
	if (r > 0)
		*ret = kept;
	return r < 0 ? r : 0;
}

/* 1 if they differ. */
static int compare_files(const struct walk *w, const struct tree_entry *a,
			 const struct tree_entry *b, struct err *err)
{
	struct content x = tree_entry_content(a), y = tree_entry_content(b);
	int r;

	if (content_equal(&x, &y))
		return 0;
	if (a->size != b->size || (a->form != TREE_LAZY && b->form != TREE_LAZY))
		return 1;
	r = find_content(w, a, &x, err);
	r = r < 0 ? r : find_content(w, b, &y, err);
	return r < 0 ? r : !content_equal(&x, &y);
}

/* 1 if they differ. */
static int compare_content(const struct walk *w, const struct tree_entry *a,
			   const struct tree_entry *b, struct err *err)
{
	if (S_ISREG(a->mode))
		return compare_files(w, a, b, err);
	return a->rdev != b->rdev || a->target_len != b->target_len ||
	       (a->target_len > 0 && memcmp(a->target, b->target, a->target_len) != 0);
}

static int compare(const struct walk *w, const struct diff_entry *e, unsigned *ret, struct err *err)
{
	const struct tree_entry *a = e->before, *b = e->after;
	unsigned what = 0;
	int r;

	*ret = DIFF_TYPE;
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT))
		return 0;
	r = a->form != TREE_DIR ? compare_content(w, a, b, err) : 0;
	if (r < 0)
		return r;
	if (r > 0)
		what |= DIFF_CONTENT;
	if (a->mode != b->mode)
		what |= DIFF_MODE;
	if (a->uid != b->uid || a->gid != b->gid)
		what |= DIFF_OWNER;
	if (!object_id_equal(&a->xattrs, &b->xattrs))
		what |= DIFF_XATTRS;
	if (w->options->links &&
	    (e->before_linked != e->after_linked || (e->before_linked && a->ino != b->ino)))
		what |= DIFF_LINKS;
	if (w->options->mtimes && (a->mtime_s != b->mtime_s || a->mtime_ns != b->mtime_ns))
		what |= DIFF_MTIME;
	if (w->options->traces &&
	    (a->ino != b->ino || a->ctime_s != b->ctime_s || a->ctime_ns != b->ctime_ns))
		what |= DIFF_TRACE;
	*ret = what;
	return 0;
}

static const struct tree_entry *dir_of(const struct tree_entry *e)
{
	return e && e->form == TREE_DIR ? e : NULL;
}

/* Go into the directories of a name, unless they are known to be the same. */
static int descend(struct walk *w, const struct tree_entry *old, const struct tree_entry *new,
		   struct err *err)
{
	const struct tree_entry *a = dir_of(old), *b = dir_of(new);
	bool links;

	if (!a && !b)
		return 0;
	if (!a || !b)
		return w->options->deep ? push(w, a, b, err) : 0;
	if (w->options->twins && !w->options->traces && can_be_twins(a, b) &&
	    twins_has(w->options->twins, &a->id, &b->id))
		return 0;
	links = (a->below.links || b->below.links) &&
		!object_id_equal(&w->root[OLD].links, &w->root[NEW].links);
	return object_id_equal(&a->id, &b->id) && !links ? 0 : push(w, a, b, err);
}

/* One name, whose path stands in w->path; either side may be NULL.  Pushing moves frames. */
static int report_name(struct walk *w, const struct tree_entry *old, const struct tree_entry *new,
		       struct err *err)
{
	const struct tree_entry *const given[SIDES] = { old, new };
	struct tree_entry e[SIDES];
	struct diff_entry told = { .path = buf_str(&w->path) };
	bool *const linked[SIDES] = { &told.before_linked, &told.after_linked };
	int r;

	if (!told.path)
		return err_nomem(err);
	for (int s = 0; s < SIDES; s++) {
		if (!given[s])
			continue;
		e[s] = *given[s];
		*linked[s] = e[s].form == TREE_LINK;
		if (!*linked[s])
			continue;
		r = root_link(w->store, &w->root[s], e[s].ino, &e[s], &w->hold[s], err);
		if (r < 0)
			return err_wrap(err, r, "'%s'", told.path);
		*linked[s] = e[s].nlink > 1; /* the others may be gone since */
	}
	told.before = old ? &e[OLD] : NULL;
	told.after = new ? &e[NEW] : NULL;
	if (told.before && told.after) {
		r = compare(w, &told, &told.what, err);
		if (r < 0)
			return err_wrap(err, r, "'%s'", told.path);
		if (told.what == 0)
			return 0;
	}
	note_difference(w);
	return w->fn(&told, w->ctx, err);
}

/* The next name that either directory has. */
static int step(struct walk *w, struct err *err)
{
	struct frame *f = &w->stack[w->depth - 1];
	struct tree_entry e[SIDES];
	bool has[SIDES];
	int order, r, read;

	if (f->end[OLD] && f->end[NEW]) {
		pop(w);
		return 0;
	}
	order = f->end[OLD] ? 1 : f->end[NEW] ? -1 : 0;
	if (order == 0)
		order = tree_name_compare(f->e[OLD].name, f->e[OLD].name_len, f->e[NEW].name,
					  f->e[NEW].name_len);
	has[OLD] = order <= 0;
	has[NEW] = order >= 0;

	w->path.len = f->path_len;
	if (f->path_len > 0 && buf_append_u8(&w->path, '/') < 0)
		return err_nomem(err);
	for (int s = 0; s < SIDES; s++)
		if (has[s])
			e[s] = f->e[s];
	r = buf_append(&w->path, e[has[OLD] ? OLD : NEW].name, e[has[OLD] ? OLD : NEW].name_len);
	if (r < 0)
		return err_nomem(err);
	r = report_name(w, has[OLD] ? &e[OLD] : NULL, has[NEW] ? &e[NEW] : NULL, err);
	/* Directories use nothing borrowed from here on, so the iterators may advance. */
	read = r == 0 ? advance_sides(w, f, has, err) : 0;
	if (read < 0)
		return unreadable(w, f->path_len, read, err);
	return r != 0 ? r : descend(w, has[OLD] ? &e[OLD] : NULL, has[NEW] ? &e[NEW] : NULL, err);
}

int diff_walk(struct store *s, const struct object_id *from, const struct object_id *to,
	      const struct diff_options *options, diff_fn fn, void *ctx, struct err *err)
{
	CLEANUP(walk_done) struct walk w = { .store = s, .options = options, .fn = fn, .ctx = ctx };
	int r = root_get(s, from, &w.root[OLD], err);

	if (r < 0)
		return r;
	r = root_get(s, to, &w.root[NEW], err);
	if (r < 0)
		return r;
	r = report_name(&w, &w.root[OLD].top, &w.root[NEW].top, err);
	if (r != 0)
		return r;
	r = descend(&w, &w.root[OLD].top, &w.root[NEW].top, err);
	while (r == 0 && w.depth > 0)
		r = step(&w, err);
	return r;
}
