/*
 * Inode numbers of the two roots say which names share a file, but a rewritten file has another
 * number than at its capture. So the grouping of names counts, not the number: a group that is the
 * same on both sides is one file before and after. A name that joins a file which stays as it is
 * becomes one more link to it; one of the names that stay is its anchor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/vec.h"
#include "cowfs/store/root.h"
#include "snapshot/apply/plan-i.h"

struct name {
	uint64_t ino;
	size_t file;
};

struct names {
	struct name *list; /* owned; by number, then in the order of a walk */
	size_t n;
};

static void names_done(struct names *names)
{
	free(names->list);
}

static int compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return (x->file > y->file) - (x->file < y->file);
}

/* The names of one side that share their file with others. */
static int collect(const struct plan *p, bool after, struct names *ret, struct err *err)
{
	ret->list = calloc(p->n_files + 1, sizeof(*ret->list));
	if (!ret->list)
		return err_nomem(err);
	for (size_t i = 0; i < p->n_files; i++) {
		const struct plan_step *s = &p->files[i];

		if (after ? s->after_linked : s->before_linked)
			ret->list[ret->n++] = (struct name){
				.ino = after ? s->after.ino : s->before.ino,
				.file = i,
			};
	}
	qsort(ret->list, ret->n, sizeof(*ret->list), compare_names);
	return 0;
}

/* How many of those that begin at `at` are one file. */
static size_t group_at(const struct names *names, size_t at)
{
	size_t n = 1;

	while (at + n < names->n && names->list[at + n].ino == names->list[at].ino)
		n++;
	return n;
}

static size_t group_of(const struct names *names, uint64_t ino)
{
	size_t lo = 0, hi = names->n;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (names->list[mid].ino < ino)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < names->n && names->list[lo].ino == ino ? group_at(names, lo) : 0;
}

/* Did exactly these names share one file before, too? */
static bool were_one(const struct plan *p, const struct name *group, size_t n,
		     const struct names *before)
{
	const struct plan_step *first = &p->files[group[0].file];

	for (size_t i = 0; i < n; i++) {
		const struct plan_step *s = &p->files[group[i].file];

		if (!s->before_linked || s->before.ino != first->before.ino)
			return false;
	}
	return first->after.nlink == n && first->before.nlink == n &&
	       group_of(before, first->before.ino) == n;
}

/*
 * Names that were one file and still are do not differ by that.  All others become a file of their
 * own, even if only attributes differ: a change in place would show under every name that the file
 * has now.
 */
static void settle_group(struct plan *p, const struct name *group, size_t n,
			 const struct names *before)
{
	const bool same = were_one(p, group, n, before);

	for (size_t i = 0; i < n; i++) {
		struct plan_step *s = &p->files[group[i].file];

		if (same)
			s->what &= ~(unsigned)DIFF_LINKS;
		else if (s->act == PLAN_CHANGE)
			s->what |= DIFF_LINKS;
	}
}

/* Does it differ only in its other names? */
static bool has_parted(const struct plan_step *s)
{
	return s->act == PLAN_CHANGE && !s->after_linked && s->what == DIFF_LINKS;
}

/*
 * If all names of a file part, one of them stays with it: that one need not be written anew, and
 * differs in nothing once the others are gone.
 */
static void settle_parted(struct plan *p, const struct name *group, size_t n)
{
	if (p->files[group[0].file].before.nlink != n)
		return;
	for (size_t i = 0; i < n; i++) {
		struct plan_step *s = &p->files[group[i].file];

		if (has_parted(s)) {
			s->what = 0;
			return;
		}
	}
}

/* Leave out what does not differ after all. */
static int drop_same(struct plan *p, struct err *err)
{
	CLEANUP(names_done) struct names before = { 0 }, after = { 0 };
	size_t left = 0;
	int r = collect(p, false, &before, err);

	if (r < 0)
		return r;
	r = collect(p, true, &after, err);
	if (r < 0)
		return r;
	for (size_t at = 0, n; at < after.n; at += n) {
		n = group_at(&after, at);
		settle_group(p, &after.list[at], n, &before);
	}
	for (size_t at = 0, n; at < before.n; at += n) {
		n = group_at(&before, at);
		settle_parted(p, &before.list[at], n);
	}
	for (size_t i = 0; i < p->n_files; i++) {
		struct plan_step *s = &p->files[i];

		if (s->act == PLAN_CHANGE && s->what == 0)
			plan_step_done(s);
		else
			p->files[left++] = *s;
	}
	p->n_files = left;
	return 0;
}

/* --- anchors ---------------------------------------------------------------------------- */

struct search {
	struct plan_making *m;
	uint64_t ino;
	struct buf path;
	struct {
		struct tree_iter *it;
		size_t path_len;
	} * stack; /* owned */
	size_t depth, cap;
};

static void search_done(struct search *s)
{
	VEC_FREE(one, s->stack, s->depth, tree_iter_free(one->it));
	buf_done(&s->path);
}

static int push(struct search *s, const struct object_id *tree, struct err *err)
{
	int r;

	if (!VEC_ROOM(s->stack, s->depth, s->cap))
		return err_nomem(err);
	r = tree_iter_new(s->m->store, tree, &s->stack[s->depth].it, err);
	if (r < 0)
		return r;
	s->stack[s->depth++].path_len = s->path.len;
	return r;
}

static bool is_planned(const struct plan *p, const char *path)
{
	size_t lo = 0, hi = p->n_files;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		const int order = path_compare(p->files[mid].path, path);

		if (order == 0)
			return true;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* The next name: 1 if it is one of the file's and stays. */
static int visit_next_name(struct search *s, struct err *err)
{
	struct tree_entry e;
	const char *path;
	int r;

	s->path.len = s->stack[s->depth - 1].path_len;
	r = tree_iter_next(s->stack[s->depth - 1].it, &e, err);
	if (r == 0)
		tree_iter_free(s->stack[--s->depth].it);
	if (r <= 0)
		return r;
	if ((s->path.len > 0 && buf_append_u8(&s->path, '/') < 0) ||
	    buf_append(&s->path, e.name, e.name_len) < 0 || !(path = buf_str(&s->path)))
		return err_nomem(err);
	if (e.form == TREE_DIR && e.below.links)
		return push(s, &e.id, err);
	return e.form == TREE_LINK && e.ino == s->ino && !is_planned(&s->m->plan, path) &&
	       !plan_leaves(s->m->options, path);
}

/*
 * A name of the file that no step touches, or NULL.  It may take a walk over all directories
 * with links, for the rare case that a name is to join a file which stays.
 */
static int find_anchor(struct plan_making *m, uint64_t ino, char **ret, struct err *err)
{
	CLEANUP(search_done) struct search s = { .m = m, .ino = ino };
	struct root root;
	int r = root_get(m->store, &m->plan.to, &root, err);

	if (r < 0)
		return r;
	r = push(&s, &root.top.id, err);
	while (r == 0 && s.depth > 0)
		r = visit_next_name(&s, err);
	if (r <= 0)
		return r;
	*ret = strdup(buf_str(&s.path));
	return *ret ? 0 : err_nomem(err);
}

int plan_link(struct plan_making *m, struct err *err)
{
	CLEANUP(names_done) struct names after = { 0 };
	struct plan *p = &m->plan;
	int r = drop_same(p, err);

	if (r < 0)
		return r;
	r = collect(p, true, &after, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_files; i++)
		p->files[i].first = i;
	for (size_t at = 0, n; at < after.n && r >= 0; at += n) {
		struct plan_step *first = &p->files[after.list[at].file];

		n = group_at(&after, at);
		for (size_t i = at; i < at + n; i++)
			p->files[after.list[i].file].first = after.list[at].file;
		if (n < first->after.nlink)
			r = find_anchor(m, first->after.ino, &first->anchor, err);
	}
	return r;
}
