#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/merge/merge-place-i.h"

#define NS_PER_S 1000000000

void places_done(struct places *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->list[i].path);
		tree_entry_done(&p->list[i].e);
	}
	free(p->list);
}

int places_add(struct places *p, const char *path, const struct version v[VERSIONS],
	       const struct tree_entry *e, struct draft_group *group, struct err *err)
{
	struct place *to;

	if (!VEC_ROOM(p->list, p->n, p->cap))
		return err_nomem(err);
	to = &p->list[p->n++];
	*to = (struct place){ .path = strdup(path), .group = group };
	memcpy(to->v, v, sizeof(to->v));
	if (!to->path || tree_entry_copy(e, &to->e) < 0)
		return err_nomem(err);
	to->e.nlink = 0;
	return 0;
}

/* --- the way there ---------------------------------------------------------------------- */

/* A directory with nothing in it yet. */
static struct tree_entry as_new(const struct tree_entry *dir)
{
	struct tree_entry e = *dir;

	e.id = (struct object_id){ { 0 } };
	e.below = (struct tree_summary){ 0 };
	e.nlink = 2;
	return e;
}

/* A directory of theirs; -ENOENT if it has none there. */
static int find_dir(const struct merging *m, const char *path, struct tree_entry *ret,
		    struct err *err)
{
	struct tree_entry e = m->theirs_root.top;
	int r = 0;

	for (size_t n; *path != '\0'; path += n + (path[n] == '/')) {
		CLEANUP(buf_done) struct buf hold = BUF_INIT;
		const struct object_id dir = e.id;

		n = strcspn(path, "/");
		r = tree_lookup(m->store, &dir, path, n, &e, &hold, err);
		if (r < 0)
			return r;
		if (e.form != TREE_DIR)
			return -ENOENT;
	}
	*ret = e;
	return r;
}

/*
 * A directory that theirs has, whether that takes part or not; or one that ours removed, with
 * something in it that is wanted after all.
 */
static int new_dir(struct merging *m, const char *path, struct tree_entry *ret, struct err *err)
{
	const struct altered *o = side_get(&m->ours, path);
	struct tree_entry e;
	int r = find_dir(m, path, &e, err);

	if (r < 0 && r != -ENOENT)
		return err_wrap(err, r, "directory '%s'", path);
	if (r == -ENOENT && o && dir_part(&o->before)) {
		e = o->before;
	} else if (r == -ENOENT) {
		/* Files were moved into it.  It is like the top. */
		e = m->draft.root.top;
		r = draft_new_ino(&m->draft, &e.ino, err);
		if (r < 0)
			return r;
		e.xattrs = (struct object_id){ { 0 } };
		e.mtime_s = e.ctime_s = m->options->now / NS_PER_S;
		e.mtime_ns = e.ctime_ns = (uint32_t)(m->options->now % NS_PER_S);
	}
	e.name = NULL;
	e.name_len = 0;
	*ret = as_new(&e);
	return 0;
}

static bool is_told(const struct merging *m, const char *path)
{
	return VEC_HAS(at, m->result.conflicts, m->result.n_conflicts,
		       at->kind == MERGE_DIR_FILE && strcmp(at->path, path) == 0);
}

/*
 * A file is in the way of a directory: reported once for everything below.  A side with nothing
 * there is described by its part of `given`.
 */
static int report_file_in_the_way(struct merging *m, const char *path,
				  const struct version given[VERSIONS], struct err *err)
{
	const struct altered *o = side_get(&m->ours, path), *t = side_get(&m->theirs, path);
	struct version v[VERSIONS];

	if (is_told(m, path))
		return 0;
	memcpy(v, given, sizeof(v));
	if (o && o->before.mode != 0)
		v[BASE] = (struct version){ path, &o->before, o->before_linked, false };
	else if (t && t->before.mode != 0)
		v[BASE] = (struct version){ path, &t->before, t->before_linked, false };
	if (o && o->after.mode != 0)
		v[OURS] = (struct version){ path, &o->after, o->after_linked, false };
	else if (!o && t && t->before.mode != 0)
		v[OURS] = v[BASE];
	if (t && t->after.mode != 0)
		v[THEIRS] = (struct version){ path, &t->after, t->after_linked, false };
	return merge_add_conflict(m, MERGE_DIR_FILE, path, v, err);
}

/*
 * 1 and the name, with all directories above it made; 0 if something else is in the way of
 * one of them and stays.
 */
static int make_way(struct merging *m, const char *path, const struct version v[VERSIONS],
		    struct draft_name **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf up = BUF_INIT;
	struct draft_name *n;
	struct tree_entry dir;
	size_t stop;
	int r, found;

	while ((found = draft_find(&m->draft, path, ret, &stop, err)) < 0) {
		if (found != -ENOENT && found != -ENOTDIR)
			return found;
		buf_reset(&up);
		if (buf_append(&up, path, stop) < 0 || !buf_str(&up))
			return err_nomem(err);
		r = draft_find(&m->draft, buf_str(&up), &n, NULL, err);
		if (r < 0)
			return r;
		if (found == -ENOTDIR)
			r = report_file_in_the_way(m, buf_str(&up), v, err);
		if (r < 0)
			return r;
		if (found == -ENOTDIR && !merge_wants_theirs(m, buf_str(&up)))
			return 0;
		r = new_dir(m, buf_str(&up), &dir, err);
		if (r < 0)
			return r;
		r = draft_make_dir(&m->draft, n, buf_str(&up), &dir, err);
		if (r < 0)
			return r;
	}
	return 1;
}

int place_dir(struct merging *m, const char *path, const struct altered *made, struct err *err)
{
	const struct version v[VERSIONS] = { [THEIRS] = { made->path, &made->after, false } };
	const struct tree_entry dir = as_new(&made->after);
	struct draft_name *n;
	int r = make_way(m, path, v, &n, err);

	if (r <= 0 || dir_part(&n->now))
		return r;
	if (draft_is_there(n)) {
		r = report_file_in_the_way(m, path, v, err);
		if (r < 0 || !merge_wants_theirs(m, path))
			return r;
	}
	return draft_make_dir(&m->draft, n, path, &dir, err);
}

/* --- the place -------------------------------------------------------------------------- */

/* Our file returns to where ours has it. */
static int stay(struct merging *m, const struct place *p, struct err *err)
{
	struct draft_name *n;
	int r;

	if (!p->v[OURS].e || strcmp(p->v[OURS].path, p->path) == 0)
		return 0;
	r = draft_find(&m->draft, p->v[OURS].path, &n, NULL, err);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 || draft_is_there(n) ? r : draft_set(n, &n->was, NULL, err);
}

static int report_taken_name(struct merging *m, const struct place *p, const char *path,
			     const struct draft_name *n, struct err *err)
{
	const struct altered *o = side_get(&m->ours, path);
	struct version v[VERSIONS];
	enum merge_kind kind = MERGE_RENAME_ADD;

	memcpy(v, p->v, sizeof(v));
	if (o && o->after.mode != 0)
		v[OURS] = (struct version){ path, &o->after, o->after_linked, false };
	if (dir_part(&n->now))
		kind = MERGE_DIR_FILE;
	else if (o && o->from)
		kind = MERGE_RENAME_RENAME;
	return merge_add_conflict(m, kind, path, v, err);
}

/* 1 if a directory of theirs has its own place, which is known by now; 0 if all is done. */
static int fill_at(struct merging *m, const struct place *p, const char *path, struct err *err)
{
	const bool own = p->v[OURS].e && strcmp(p->v[OURS].path, path) == 0;
	struct draft_name *n;
	int r = make_way(m, path, p->v, &n, err);

	if (r == 0)
		return stay(m, p, err);
	if (r > 0 && own && dir_part(&n->now))
		return 1;
	if (r > 0 && draft_is_there(n) && !own) {
		r = report_taken_name(m, p, path, n, err);
		if (r < 0)
			return r;
		if (!merge_wants_theirs(m, path))
			return stay(m, p, err);
		if (dir_part(&n->now))
			r = draft_remove(&m->draft, n, path, err);
	}
	return r < 0 ? r : draft_set(n, &p->e, p->group, err);
}

static int fill(struct merging *m, const struct place *p, struct err *err)
{
	const char *theirs = p->v[THEIRS].path;
	int r = fill_at(m, p, p->path, err);

	/* Then it goes where theirs has it, if that is another place. */
	if (r > 0 && theirs && strcmp(theirs, p->path) != 0)
		r = fill_at(m, p, theirs, err);
	return r;
}

int places_fill(struct merging *m, const struct places *p, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->n && r >= 0; i++)
		r = fill(m, &p->list[i], err);
	return r < 0 ? r : 0;
}
