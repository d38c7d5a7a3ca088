/*
 * First, every file that theirs changed is matched with ours, wherever it is now, and removed files
 * leave the draft.  Then directories that theirs removed go if they are empty, and new ones come.
 * Only then do files take their places, so a taken place stays taken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/merge/merge-i.h"
#include "snapshot/merge/merge-place-i.h"

/* --- versions --------------------------------------------------------------------------- */

/* Did a side do more to a file than touch it? */
static bool changed(const struct altered *a)
{
	return a && (a->to || altered_counts(a));
}

/* --- what becomes of a file ------------------------------------------------------------- */

static int clear_name(struct merging *m, const char *path, struct err *err)
{
	struct draft_name *n;
	int r = draft_find(&m->draft, path, &n, NULL, err);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	if (!dir_part(&n->now))
		draft_clear(n);
	return r;
}

/* Where the merged file stands; *ret_clash is the path of a conflict of names, else NULL. */
static const char *merged_path(const struct merging *m, const struct version v[VERSIONS],
			       const char **ret_clash)
{
	const char *b = v[BASE].path, *o = v[OURS].path, *t = v[THEIRS].path;
	const struct altered *other = b ? side_get(&m->theirs, o) : NULL;

	*ret_clash = NULL;
	if (!b || strcmp(o, t) == 0)
		return o;
	/*
	 * If theirs wants another file at our place, this file returns to its own.  An added file
	 * reports its conflict itself.
	 */
	if (merge_wants_theirs(m, o) && other && file_part(&other->after)) {
		*ret_clash = other->from ? o : NULL;
		return t;
	}
	if (strcmp(b, t) == 0)
		return o;
	if (strcmp(b, o) == 0)
		return t;
	/* A choice is asked for by where ours has it, and told there. */
	*ret_clash = merge_wants_theirs(m, o) && !merge_choice_of(m, o) ? t : o;
	return merge_wants_theirs(m, o) ? t : o;
}

/* Does a side have anything at a path?  `other` is the other one. */
static int has(struct merging *m, const struct side *side, const struct side *other,
	       const char *path, struct err *err)
{
	const struct altered *a = side_get(side, path), *b = side_get(other, path);
	struct draft_name *n;
	int r;

	if (a)
		return a->after.mode != 0;
	if (b)
		return b->before.mode != 0;
	r = draft_find(&m->draft, path, &n, NULL, err);
	return r == -ENOENT || r == -ENOTDIR ? 0 : r < 0 ? r : draft_is_there(n);
}

/*
 * Where a directory that one side renamed takes a path of the other with it; *ret is NULL if
 * it does not, or if that other side has something there itself.
 */
static int follow_dir(struct merging *m, const struct side *renamed, const struct side *other,
		      const char *path, char **ret, struct err *err)
{
	AUTO_FREE char *moved = NULL;
	int r;

	*ret = NULL;
	r = side_follow_dir(renamed, path, &moved, err);
	if (r < 0)
		return r;
	if (moved)
		r = has(m, other, renamed, moved, err);
	if (r == 0)
		*ret = TAKE_PTR(moved);
	return r < 0 ? r : 0;
}

/* Does a directory that the other side renamed take `from` to `to`? */
static int leads_to(const struct side *renamed, const char *from, const char *to, struct err *err)
{
	AUTO_FREE char *moved = NULL;
	int r = side_follow_dir(renamed, from, &moved, err);

	return r < 0 ? r : moved && strcmp(moved, to) == 0;
}

/*
 * merged_path(), with directories that were renamed: a file that one side moved into one that
 * the other renamed goes on with that.  *ret_moved is then where; owned, else NULL.
 */
static int find_path(struct merging *m, const struct version v[VERSIONS], const char **ret,
		     const char **ret_clash, char **ret_moved, struct err *err)
{
	const char *b = v[BASE].path, *o = v[OURS].path, *t = v[THEIRS].path;
	int r = 0;

	*ret_moved = NULL;
	*ret = merged_path(m, v, ret_clash);
	if (!b || strcmp(*ret, b) == 0 || strcmp(o, t) == 0)
		return 0;
	if (*ret_clash && strcmp(b, o) != 0 && strcmp(b, t) != 0) {
		r = leads_to(&m->theirs, o, t, err);
		if (r > 0)
			*ret = t;
		else if (r == 0 && (r = leads_to(&m->ours, t, o, err)) > 0)
			*ret = o;
		if (r != 0)
			*ret_clash = NULL;
		return r < 0 ? r : 0;
	}
	r = *ret == t ? follow_dir(m, &m->ours, &m->theirs, t, ret_moved, err)
		      : follow_dir(m, &m->theirs, &m->ours, o, ret_moved, err);
	if (*ret_moved)
		*ret = *ret_moved;
	return r;
}

/* Ours and theirs have it. */
static int settle_both(struct merging *m, struct places *p, const struct version v[VERSIONS],
		       struct err *err)
{
	struct draft_group *g = NULL;
	struct tree_entry e;
	AUTO_FREE char *moved = NULL;
	const char *clash, *path;
	int r = find_path(m, v, &path, &clash, &moved, err);

	if (r < 0)
		return r;
	if (path == v[THEIRS].path)
		r = merge_share_choice(m, v[OURS].path, path, err);
	if (r < 0)
		return r;
	if (clash)
		r = merge_add_conflict(m, MERGE_RENAME_RENAME, clash, v, err);
	if (r < 0)
		return r;
	r = names_join(m, path, v, &e, &g, err);
	if (r < 0)
		return r;
	if (strcmp(path, v[OURS].path) != 0)
		r = clear_name(m, v[OURS].path, err);
	return r < 0 ? r : places_add(p, path, v, &e, g, err);
}

/* Theirs has it and ours does not. */
static int settle_theirs(struct merging *m, struct places *p, const char *path,
			 const struct version v[VERSIONS], struct err *err)
{
	struct draft_group *g = NULL;
	int r = v[THEIRS].linked ? names_join_theirs(m, path, v, &g, err) : 0;

	return r < 0 ? r : places_add(p, path, v, v[THEIRS].e, g, err);
}

/* Theirs removed it. */
static int settle_removed(struct merging *m, const struct altered *o, const struct altered *t,
			  const struct version v[VERSIONS], struct err *err)
{
	int r = 0;

	if (changed(o)) {
		/* The file of theirs that goes there will find it. */
		if (dir_part(&t->after) && !o->to)
			return 0;
		r = merge_add_conflict(m, o->to ? MERGE_RENAME_DELETE : MERGE_EDIT_DELETE,
				       v[OURS].path, v, err);
		if (r < 0 || !merge_wants_theirs(m, v[OURS].path))
			return r;
	}
	return clear_name(m, v[OURS].path, err);
}

static int settle_new(struct merging *m, struct places *p, const struct altered *t,
		      struct err *err);

/* Did a side replace it with another type?  Then it is not the same file any more. */
static bool is_replaced(const struct altered *a)
{
	return !a->to && (a->what & DIFF_TYPE);
}

/* A file that was in base. */
static int settle_known(struct merging *m, struct places *p, const struct altered *t,
			struct err *err)
{
	const struct altered *o = side_get(&m->ours, t->path);
	struct version v[VERSIONS];
	int r;

	versions_of(&m->ours, t, v);
	if (o && o->to && is_replaced(t)) {
		v[THEIRS] = (struct version){ 0 };
		r = settle_removed(m, o, t, v, err);
		return r < 0 || !file_part(&t->after) ? r : settle_new(m, p, t, err);
	}
	if (o && t->to && is_replaced(o))
		v[OURS] = (struct version){ 0 };
	if (v[OURS].e && v[THEIRS].e)
		return settle_both(m, p, v, err);
	if (v[OURS].e)
		return settle_removed(m, o, t, v, err);
	if (!v[THEIRS].e || !changed(t))
		return 0;
	/* A directory that ours has in its place will be found there. */
	if (!dir_part(&o->after) || t->to) {
		r = merge_add_conflict(m, t->to ? MERGE_RENAME_DELETE : MERGE_DELETE_EDIT,
				       v[THEIRS].path, v, err);
		if (r < 0 || !merge_wants_theirs(m, v[THEIRS].path))
			return r;
	}
	return settle_theirs(m, p, v[THEIRS].path, v, err);
}

/* A file that theirs made; not one that it renamed. */
static int settle_new(struct merging *m, struct places *p, const struct altered *t, struct err *err)
{
	const struct altered *o = side_get(&m->ours, t->path);
	struct version v[VERSIONS] = { [THEIRS] = version_of(t, &t->after, t->after_linked) };
	AUTO_FREE char *moved = NULL;
	int r = 0;

	if (o)
		v[OURS] = version_of(o, &o->after, o->after_linked);
	if (v[OURS].e && !o->from)
		return settle_both(m, p, v, err);
	if (v[OURS].e) {
		r = merge_add_conflict(m, MERGE_RENAME_ADD, t->path, v, err);
		if (r < 0 || !merge_wants_theirs(m, t->path))
			return r;
	}
	if (t->before.mode == 0)
		r = follow_dir(m, &m->ours, &m->theirs, t->path, &moved, err);
	return r < 0 ? r : settle_theirs(m, p, moved ? moved : t->path, v, err);
}

/* Files that ours made in a directory follow it when theirs renames it. */
static int settle_moved(struct merging *m, struct places *p, const struct altered *o,
			struct err *err)
{
	struct version v[VERSIONS] = { [OURS] = version_of(o, &o->after, o->after_linked) };
	AUTO_FREE char *moved = NULL;
	struct draft_group *g = NULL;
	int r;

	/* Theirs changed it too, so it was handled above. */
	if (o->before.mode != 0 || (o->from && side_get(&m->theirs, o->from->path)))
		return 0;
	r = dir_part(&o->after) ? side_follow_dir(&m->theirs, o->path, &moved, err)
				: follow_dir(m, &m->theirs, &m->ours, o->path, &moved, err);
	if (r < 0 || !moved)
		return r;
	if (dir_part(&o->after))
		return place_dir(m, moved, o, err);
	if (o->after_linked)
		r = draft_group_of_ours(&m->draft, o->after.ino, &g, err);
	if (r < 0)
		return r;
	r = clear_name(m, o->path, err);
	return r < 0 ? r : places_add(p, moved, v, v[OURS].e, g, err);
}

/* --- directories ------------------------------------------------------------------------ */

/* If nothing is left in it. */
static int remove_dir(struct merging *m, const char *path, struct err *err)
{
	struct draft_name *n;
	int r = draft_find(&m->draft, path, &n, NULL, err);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0 || !dir_part(&n->now))
		return r;
	r = draft_is_empty(&m->draft, n, path, err);
	if (r > 0)
		draft_clear(n);
	return r;
}

static int change_dir(struct merging *m, const struct altered *t, struct err *err)
{
	struct version v[VERSIONS] = {
		[BASE] = { t->path, &t->before, false },
		[OURS] = { .path = t->path },
		[THEIRS] = { t->path, &t->after, false },
	};
	struct draft_name *n;
	struct tree_entry e;
	int r = draft_find(&m->draft, t->path, &n, NULL, err);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0 || !dir_part(&n->now))
		return r;
	v[OURS].e = &n->now;
	r = merge_dir(m, v, &e, err);
	return r < 0 ? r : draft_set(n, &e, NULL, err);
}

/* Those that ours made, if theirs renamed the one they were in, and those that theirs removed. */
static int remove_dirs(struct merging *m, struct err *err)
{
	int r = 0;

	for (size_t i = m->ours.n; i > 0 && r >= 0 && !m->options->no_renames; i--) {
		const struct altered *o = &m->ours.list[i - 1];
		AUTO_FREE char *moved = NULL;

		if (o->before.mode != 0 || !dir_part(&o->after))
			continue;
		r = side_follow_dir(&m->theirs, o->path, &moved, err);
		if (r < 0)
			return r;
		if (moved)
			r = remove_dir(m, o->path, err);
	}
	for (size_t i = m->theirs.n; i > 0 && r >= 0; i--) {
		const struct altered *t = &m->theirs.list[i - 1];

		if (dir_part(&t->before) && !dir_part(&t->after))
			r = remove_dir(m, t->path, err);
	}
	return r;
}

static int make_dir(struct merging *m, const struct altered *t, struct err *err)
{
	AUTO_FREE char *moved = NULL;
	int r = 0;

	if (t->before.mode == 0)
		r = side_follow_dir(&m->ours, t->path, &moved, err);
	return r < 0 ? r : place_dir(m, moved ? moved : t->path, t, err);
}

static int join_dirs(struct merging *m, struct err *err)
{
	const struct altered *t;
	int r = remove_dirs(m, err);

	for (size_t i = 0; i < m->theirs.n && r >= 0; i++) {
		t = &m->theirs.list[i];
		if (!dir_part(&t->after))
			continue;
		if (dir_part(&t->before))
			r = change_dir(m, t, err);
		else
			r = make_dir(m, t, err);
	}
	return r < 0 ? r : 0;
}

int merge_join(struct merging *m, struct err *err)
{
	CLEANUP(places_done) struct places p = { 0 };
	int r = names_match(m, err);

	for (size_t i = 0; i < m->theirs.n && r >= 0; i++) {
		const struct altered *t = &m->theirs.list[i];

		if (file_part(&t->before))
			r = settle_known(m, &p, t, err);
		else if (file_part(&t->after) && !t->from)
			r = settle_new(m, &p, t, err);
	}
	for (size_t i = 0; i < m->ours.n && r >= 0 && !m->options->no_renames; i++)
		r = settle_moved(m, &p, &m->ours.list[i], err);
	if (r < 0)
		return r;
	r = join_dirs(m, err);
	return r < 0 ? r : places_fill(m, &p, err);
}
