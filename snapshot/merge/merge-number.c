/*
 * Ours has its numbers and theirs has others: file systems reuse numbers, and a program that writes
 * a file anew leaves the old number to the file that it moved away. But within one tree, programs
 * (cp, diff and find) take two files with one number for one. So files of ours keep their numbers,
 * and others get new ones where necessary.
 *
 * Not seen is a file that a side wrote anew if only its number differs from the old one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/merge/merge-i.h"

struct numbered {
	struct draft_name **list; /* owned; names of what has one name; by number, then as below */
	size_t n, cap;
	struct map came; /* those whose number ours does not have there, by that */
};

static void numbered_done(struct numbered *l)
{
	free(l->list);
	map_done(&l->came);
}

static bool is_own(const struct draft_name *n)
{
	return n->was.form != TREE_LINK && n->was.ino == n->now.ino;
}

/* Is it a directory, or a file that has no other names? */
static bool is_single(const struct draft_name *n)
{
	return draft_is_there(n) && !n->group && n->now.form != TREE_LINK;
}

static int add(struct numbered *l, struct draft_name *n)
{
	if (!VEC_ROOM(l->list, l->n, l->cap))
		return -ENOMEM;
	l->list[l->n++] = n;
	return 0;
}

/* First what ours has there, then in the order of paths: a merge is to give the same tree again. */
static int by_number(const void *a, const void *b)
{
	const struct draft_name *x = *(struct draft_name *const *)a,
				*y = *(struct draft_name *const *)b;
	int order;

	if (x->now.ino != y->now.ino)
		return x->now.ino < y->now.ino ? -1 : 1;
	if (is_own(x) != is_own(y))
		return is_own(x) ? -1 : 1;
	order = strcmp(x->in->path, y->in->path);
	return order ? order : strcmp(x->name, y->name);
}

/* Files that ours made may not have been looked up yet; look up those whose number matters. */
static int look_at_ours(struct merging *m, const struct numbered *l, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < m->ours.n && r >= 0; i++) {
		const struct altered *o = &m->ours.list[i];
		struct draft_name *n;

		if (o->after.mode == 0 || o->after_linked)
			continue;
		if (!map_get(&l->came, &o->after.ino) && !map_get(&m->draft.groups, &o->after.ino))
			continue;
		r = draft_find(&m->draft, o->path, &n, NULL, err);
		if (r == -ENOENT || r == -ENOTDIR)
			r = 0;
	}
	return r;
}

static int each_single(struct draft *d, struct numbered *l, bool that_came)
{
	struct draft_name *n;
	void *existing;
	int r = 0;

	for (size_t i = 0; i < d->n_dirs; i++)
		for (size_t pos = 0; r >= 0 && (n = map_next(&d->dirs[i]->names, &pos));)
			if (is_single(n) && that_came && !is_own(n))
				r = map_add(&l->came, &n->now.ino, n, &existing);
			else if (is_single(n) && !that_came)
				r = add(l, n);
	return r;
}

/* Does a file with several names have its number?  1 or 0. */
static int is_of_group(struct draft *d, const struct draft_name *n, struct err *err)
{
	struct draft_group *g = NULL;
	/* Ours itself has no two files of one number. */
	int r = is_own(n) ? 0 : draft_group_of_ours(d, n->now.ino, &g, err);

	return r < 0 ? r : draft_has_group(d, n->now.ino);
}

int merge_give_numbers(struct merging *m, struct err *err)
{
	struct draft *d = &m->draft;
	CLEANUP(numbered_done)
	struct numbered l = { .came = MAP_INIT(d->groups.hash, d->groups.equal) };
	uint64_t last = 0;
	int r;

	if (each_single(d, &l, true) < 0)
		return err_nomem(err);
	r = look_at_ours(m, &l, err);
	if (r < 0)
		return r;
	if (each_single(d, &l, false) < 0)
		return err_nomem(err);
	VEC_SORT(l.list, l.n, by_number);
	map_done(&l.came); /* numbers change from here on */
	for (size_t i = 0; i < l.n && r >= 0; i++) {
		struct draft_name *n = l.list[i];

		r = n->now.ino == last ? 1 : is_of_group(d, n, err);
		if (r > 0)
			r = draft_new_ino(d, &n->now.ino, err);
		else
			last = n->now.ino;
	}
	return r;
}
