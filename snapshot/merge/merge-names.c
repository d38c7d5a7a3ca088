/*
 * Which names are one file. A file of ours and one of theirs may be the same under other names and
 * other numbers, and one file of one side may be two on the other, each with edits of its own. All
 * edits made through any of its names go into the file, one after the other.
 */
#include <errno.h>
#include <string.h>

#include "snapshot/merge/merge-i.h"

static uint64_t label(const struct version *v)
{
	return v->e && v->linked ? v->e->ino : 0;
}

/* 1 and what base has under a number that several names have; 0 if it has none. */
static int find_in_base(const struct merging *m, uint64_t ino, struct tree_entry *ret,
			struct buf *hold, struct err *err)
{
	int r = root_find_link(m->store, &m->base, ino, ret, hold, err);

	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/*
 * Is the file with this number the same in ours and theirs?  File systems reuse numbers, so ours
 * must still hold its old content, or theirs.
 */
static int is_same_file(struct merging *m, const struct version *t, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct draft_group *g;
	struct tree_entry b;
	int r = find_in_base(m, label(t), &b, &hold, err);

	if (r <= 0)
		return r;
	r = draft_group_of_ours(&m->draft, label(t), &g, err);
	if (r < 0 || !g || !merge_same_type(&b, t->e))
		return r;
	return merge_same_content(&g->was, &b) || merge_same_content(&g->was, t->e);
}

static int group_of_theirs(struct merging *m, const struct version *t, struct draft_group **ret,
			   struct err *err)
{
	int r = is_same_file(m, t, err);

	return r < 0 ? r : draft_group_of_theirs(&m->draft, label(t), r > 0, ret, err);
}

/*
 * A name that theirs gave to a file of ours may be the first to be met, or the only one that is
 * left: what theirs made of the file is merged then.
 */
static int merge_group(struct merging *m, const char *path, const struct version *t,
		       struct draft_group *g, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct version v[VERSIONS] = { [OURS] = { path, &g->now, true }, [THEIRS] = *t };
	struct tree_entry b, e;
	int r;

	if (g->was.mode == 0 || g->merged)
		return 0;
	r = find_in_base(m, label(t), &b, &hold, err);
	if (r < 0)
		return r;
	if (r > 0)
		v[BASE] = (struct version){ path, &b, true };
	r = merge_file(m, path, v, &e, err);
	if (r < 0)
		return r;
	r = draft_group_set(g, &e, err);
	g->merged = r >= 0;
	return r;
}

/*
 * The names follow the side that changed them, ours if both did.  A file that lost its other names
 * in an earlier merge may still be listed in base as one of several; it counts as single.  The last
 * of several names in theirs is still the same file.
 */
static bool names_are_theirs(const struct version v[VERSIONS])
{
	const uint64_t b = v[BASE].e && v[BASE].e->nlink > 1 ? label(&v[BASE]) : 0;
	const uint64_t o = label(&v[OURS]);
	const bool still = b == v[THEIRS].e->ino || v[THEIRS].renumbered;
	const uint64_t t = still ? b : label(&v[THEIRS]);

	return t != b && (o == b || v[OURS].renumbered);
}

static int match(struct merging *m, uint64_t ours, uint64_t theirs, struct err *err)
{
	struct draft_group *g;
	int r = draft_group_of_ours(&m->draft, ours, &g, err);

	return r < 0 || !g ? r : draft_group_meets(&m->draft, g, theirs, err);
}

/* Is what has this name the file that had it, whatever was made of that? */
static bool is_still(const struct altered *a)
{
	return a->before_linked && a->after_linked && merge_same_type(&a->before, &a->after) &&
	       (a->renumbered || a->before.ino == a->after.ino);
}

/*
 * Shared names show which files of ours and theirs are one, whatever their numbers: a rollback or
 * undo changes the numbers.
 */
int names_match(struct merging *m, struct err *err)
{
	struct version v[VERSIONS];
	int r = 0;

	for (size_t i = 0; i < m->theirs.n && r >= 0; i++) {
		if (!file_part(&m->theirs.list[i].before))
			continue;
		versions_of(&m->ours, &m->theirs.list[i], v);
		if (label(&v[OURS]) && label(&v[THEIRS]) &&
		    merge_same_type(v[OURS].e, v[THEIRS].e) && !names_are_theirs(v))
			r = match(m, label(&v[OURS]), label(&v[THEIRS]), err);
	}
	/* A name that theirs left alone: its file has the number there that it has in base. */
	for (size_t i = 0; i < m->ours.n && r >= 0; i++) {
		const struct altered *o = &m->ours.list[i];

		if (is_still(o) && !side_get(&m->theirs, o->path))
			r = match(m, o->after.ino, o->before.ino, err);
	}
	return r;
}

/* --- the file of a name ----------------------------------------------------------------- */

int names_join_theirs(struct merging *m, const char *path, const struct version v[VERSIONS],
		      struct draft_group **ret, struct err *err)
{
	int r = group_of_theirs(m, &v[THEIRS], ret, err);

	if (r < 0)
		return r;
	r = merge_group(m, path, &v[THEIRS], *ret, err);
	if (r < 0)
		return r;
	if ((*ret)->now.mode == 0)
		r = draft_group_set(*ret, v[THEIRS].e, err);
	return r;
}

static int group_of_ours(struct merging *m, const struct version *o, struct draft_group **ret,
			 struct err *err)
{
	return o->linked ? draft_group_of_ours(&m->draft, o->e->ino, ret, err) : 0;
}

/* Set the group's file; `e` may borrow from the old one. */
static int set_group(struct draft_group *g, struct tree_entry *e, struct err *err)
{
	int r = draft_group_set(g, e, err);

	if (r < 0)
		return r;
	*e = g->now;
	return r;
}

/*
 * Of two types only one can stay, and it belongs to its side alone: other names it has there are
 * not names of this file.
 */
static int join_types(struct merging *m, const char *path, const struct version v[VERSIONS],
		      struct tree_entry *e, struct draft_group **ret, struct err *err)
{
	int r = merge_file(m, path, v, e, err);

	if (r < 0)
		return r;
	if (merge_same_type(e, v[THEIRS].e))
		return v[THEIRS].linked ? names_join_theirs(m, path, v, ret, err) : 0;
	return group_of_ours(m, &v[OURS], ret, err);
}

/* It has the names that it has in ours. */
static int join_ours(struct merging *m, const char *path, const struct version v[VERSIONS],
		     struct tree_entry *e, struct draft_group **ret, struct err *err)
{
	struct version w[VERSIONS];
	struct draft_group *g = NULL;
	int r = group_of_ours(m, &v[OURS], &g, err);

	if (r < 0)
		return r;
	*ret = g;
	/* Another name of the same two files was merged already: reuse that. */
	if (g && v[THEIRS].linked && g->merged && g->theirs == v[THEIRS].e->ino) {
		*e = g->now;
		return 0;
	}
	memcpy(w, v, sizeof(w));
	if (g)
		w[OURS].e = &g->now;
	r = merge_file(m, path, w, e, err);
	if (r < 0)
		return r;
	if (g)
		r = set_group(g, e, err);
	if (r < 0)
		return r;
	if (g && v[THEIRS].linked) {
		r = draft_group_meets(&m->draft, g, v[THEIRS].e->ino, err);
		g->merged |= g->theirs == v[THEIRS].e->ino;
	}
	return r;
}

/* It has those that theirs gave it, unless ours had made of it what cannot be merged with that file. */
static int join_other(struct merging *m, const char *path, const struct version v[VERSIONS],
		      struct tree_entry *e, struct draft_group **ret, struct err *err)
{
	struct version w[VERSIONS];
	struct draft_group *g;
	size_t told;
	int r = group_of_theirs(m, &v[THEIRS], &g, err);

	if (r < 0)
		return r;
	r = merge_group(m, path, &v[THEIRS], g, err);
	if (r < 0)
		return r;
	memcpy(w, v, sizeof(w));
	if (g->known)
		w[THEIRS].e = &g->now;
	told = m->result.n_conflicts;
	r = merge_file(m, path, w, e, err);
	if (r < 0)
		return r;
	if (g->known && m->result.n_conflicts > told && !merge_wants_theirs(m, path))
		return group_of_ours(m, &v[OURS], ret, err);
	*ret = g;
	g->known = true;
	return set_group(g, e, err);
}

int names_join(struct merging *m, const char *path, const struct version v[VERSIONS],
	       struct tree_entry *e, struct draft_group **ret, struct err *err)
{
	int r;

	*ret = NULL;
	if (!merge_same_type(v[OURS].e, v[THEIRS].e))
		return join_types(m, path, v, e, ret, err);
	if (!names_are_theirs(v))
		return join_ours(m, path, v, e, ret, err);
	if (v[THEIRS].linked)
		return join_other(m, path, v, e, ret, err);
	r = merge_file(m, path, v, e, err);
	if (r < 0)
		return r;
	/* It leaves those that keep the number. */
	if (v[OURS].linked)
		e->ino = v[THEIRS].e->ino;
	return r;
}
