#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/diff/delta.h"
#include "snapshot/merge/merge-i.h"

static void altered_done(struct altered *a)
{
	free(a->path);
	tree_entry_done(&a->before);
	tree_entry_done(&a->after);
	free(a->vote);
}

void side_done(struct side *s)
{
	VEC_FREE(it, s->list, s->n, altered_done(it));
	map_done(&s->by_path);
}

struct altered *side_get(const struct side *s, const char *path)
{
	return map_get(&s->by_path, path);
}

const struct tree_entry *file_part(const struct tree_entry *e)
{
	return e->mode != 0 && e->form != TREE_DIR ? e : NULL;
}

bool altered_counts(const struct altered *a)
{
	return a->before.mode == 0 || a->after.mode == 0 ||
	       (a->what & ~(unsigned)(DIFF_LINKS | DIFF_MTIME)) != 0;
}

/* --- collecting ------------------------------------------------------------------------- */

struct collecting {
	struct side side;
	merge_take_fn take;
	void *take_ctx;
};

static void collecting_done(struct collecting *c)
{
	side_done(&c->side);
}

static int on_difference(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct collecting *c = ctx;
	struct side *s = &c->side;
	struct altered *a;

	if (c->take && !c->take(e->path, c->take_ctx)) {
		s->left_out = true;
		return 0;
	}
	/*
	 * The whole path of each change is kept, so depth would cost its square; see also
	 * plan-make.c.
	 */
	if (!e->before && strlen(e->path) >= PATH_MAX)
		return err_set(err, -ECANCELED,
			       "'%.60s...' is so deep that its path has more than %d bytes: no "
			       "program could name it, and it is not merged",
			       e->path, PATH_MAX - 1);
	if (!VEC_ROOM(s->list, s->n, s->cap))
		return err_nomem(err);
	a = &s->list[s->n++];
	*a = (struct altered){
		.path = strdup(e->path),
		.before_linked = e->before_linked,
		.after_linked = e->after_linked,
		.what = e->what,
	};
	if (!a->path || (e->before && tree_entry_copy(e->before, &a->before) < 0) ||
	    (e->after && tree_entry_copy(e->after, &a->after) < 0))
		return err_nomem(err);
	return 0;
}

static int by_numbers(const void *a, const void *b)
{
	const struct altered *x = *(struct altered *const *)a, *y = *(struct altered *const *)b;

	if (x->before.ino != y->before.ino)
		return x->before.ino < y->before.ino ? -1 : 1;
	return (x->after.ino > y->after.ino) - (x->after.ino < y->after.ino);
}

/* These had one number before: have they, and they alone, one number now?  A file keeps its type. */
static bool are_all(struct altered *const *group, size_t n)
{
	return group[0]->after.ino == group[n - 1]->after.ino && group[0]->before.nlink == n &&
	       group[0]->after.nlink == n && merge_same_type(&group[0]->before, &group[0]->after);
}

/*
 * Rewriting a file under all of its names gives it a new number.  That alone does not change which
 * names share it.
 */
static int find_renumbered(struct side *s)
{
	AUTO_FREE struct altered **linked = calloc(s->n + 1, sizeof(struct altered *));
	size_t n = 0;

	if (!linked)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].before_linked && s->list[i].after_linked)
			linked[n++] = &s->list[i];
	qsort(linked, n, sizeof(*linked), by_numbers);
	for (size_t at = 0, end; at < n; at = end) {
		for (end = at + 1; end < n && linked[end]->before.ino == linked[at]->before.ino;)
			end++;
		for (size_t i = at; i < end && are_all(linked + at, end - at); i++)
			linked[i]->renumbered = linked[i]->after.ino != linked[i]->before.ino;
	}
	return 0;
}

int side_collect(struct store *s, const struct object_id *base, const struct object_id *root,
		 merge_take_fn take, void *take_ctx, struct side *ret, struct err *err)
{
	static const struct diff_options all = { .mtimes = true, .links = true, .deep = true };
	CLEANUP(collecting_done)
	struct collecting c = { .side = SIDE_INIT, .take = take, .take_ctx = take_ctx };
	void *existing;
	int r = diff_walk(s, base, root, &all, on_difference, &c, err);

	/* Only now do they stay where they are. */
	for (size_t i = 0; i < c.side.n && r >= 0; i++)
		if (map_add(&c.side.by_path, c.side.list[i].path, &c.side.list[i], &existing) < 0)
			r = err_nomem(err);
	if (r < 0)
		return r;
	if (find_renumbered(&c.side) < 0)
		return err_nomem(err);
	*ret = c.side;
	c.side = SIDE_INIT;
	return 0;
}

/* --- renames ---------------------------------------------------------------------------- */

/* The length of the path of the directory above; 0: it is the top. */
static size_t above(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len > 0 ? len - 1 : 0;
}

/* Is a directory above a path gone from the side?  `scratch` is for paths. */
static int is_dir_gone(const struct side *s, const char *path, struct buf *scratch)
{
	for (size_t n = above(path, strlen(path)); n > 0; n = above(path, n)) {
		const struct altered *a;

		buf_reset(scratch);
		if (buf_append(scratch, path, n) < 0 || !buf_str(scratch))
			return -ENOMEM;
		a = side_get(s, buf_str(scratch));
		if (a && dir_part(&a->before) && !dir_part(&a->after))
			return 1;
	}
	return 0;
}

/*
 * Is the path's directory new, too?  Then base had none that could be gone, and the directories
 * above were checked with it.
 */
static int is_in_new_dir(const struct side *s, const char *path, struct buf *scratch)
{
	const struct altered *dir;

	buf_reset(scratch);
	if (buf_append(scratch, path, above(path, strlen(path))) < 0 || !buf_str(scratch))
		return -ENOMEM;
	dir = side_get(s, buf_str(scratch));
	return dir && dir->before.mode == 0;
}

/* 1 if the side lacks a file that the other side changed, or a directory that it put something in. */
static int could_matter(const struct side *side, const struct side *other, struct err *err)
{
	CLEANUP(buf_done) struct buf scratch = BUF_INIT;
	int r = 0;

	for (size_t i = 0; i < other->n && r == 0; i++) {
		const struct altered *o = &other->list[i], *a = side_get(side, o->path);

		if (a && file_part(&a->before) && !file_part(&a->after) && altered_counts(o))
			return 1;
		if (o->before.mode != 0)
			continue;
		r = is_in_new_dir(other, o->path, &scratch);
		if (r < 0)
			return err_nomem(err);
		r = r > 0 ? 0 : is_dir_gone(side, o->path, &scratch);
	}
	return r < 0 ? err_nomem(err) : r;
}

int side_find_renames(struct store *s, const struct object_id *base, const struct object_id *root,
		      struct side *side, const struct side *other, struct err *err)
{
	CLEANUP(delta_done) struct delta d = { 0 };
	int r = could_matter(side, other, err);

	if (r > 0)
		r = delta_find(s, base, root, &(struct delta_options){ .renames = true }, &d, err);
	for (size_t i = 0; i < d.n_files && r >= 0; i++) {
		struct altered *from, *to;

		if (d.files[i].status != DELTA_RENAMED)
			continue;
		/* If only one half takes part, each half counts alone. */
		from = side_get(side, d.files[i].old_path);
		to = side_get(side, d.files[i].path);
		if (from && to) {
			from->to = to;
			to->from = from;
			side->renamed = true;
		}
	}
	return r < 0 ? r : 0;
}

/* How many of the files that were below a directory went to another. */
struct vote {
	const char *to; /* borrowed; not terminated */
	size_t len;
	size_t n;   /* 0: nothing says that it went anywhere */
	bool split; /* no place has the most */
};

/*
 * Where a file that was below a directory says that this went; false: it says nothing.  One that
 * was in d/s and is in e/s says e.
 */
static bool says(const struct altered *a, const char *dir, size_t dir_len, struct vote *ret)
{
	size_t from = above(a->path, strlen(a->path));
	size_t to = a->to ? above(a->to->path, strlen(a->to->path)) : 0;

	if (!a->to || from < dir_len || strncmp(a->path, dir, dir_len) != 0 ||
	    a->path[dir_len] != '/')
		return false;
	while (from > dir_len) {
		const size_t up = above(a->path, from), up_to = above(a->to->path, to);

		if (from - up != to - up_to ||
		    strncmp(a->path + up, a->to->path + up_to, from - up) != 0)
			return false;
		from = up;
		to = up_to;
	}
	*ret = (struct vote){ a->to->path, to, 1 };
	return true;
}

static int count_vote(struct buf *votes, const struct vote *v)
{
	struct vote *list = (struct vote *)(void *)votes->data;
	const size_t n = votes->len / sizeof(*v);

	for (size_t i = 0; i < n; i++) {
		if (list[i].len == v->len && strncmp(list[i].to, v->to, v->len) == 0) {
			list[i].n++;
			return 0;
		}
	}
	return buf_append(votes, v, sizeof(*v));
}

static int count_votes(const struct side *s, const char *dir, size_t len, struct vote *ret)
{
	CLEANUP(buf_done) struct buf votes = BUF_INIT;
	const struct vote *list;
	struct vote v = { 0 };

	for (size_t i = 0; i < s->n; i++)
		if (says(&s->list[i], dir, len, &v) && count_vote(&votes, &v) < 0)
			return -ENOMEM;
	list = (const struct vote *)(const void *)votes.data;
	for (size_t i = 0; i < votes.len / sizeof(v); i++) {
		const bool split = list[i].n == ret->n || (ret->split && list[i].n < ret->n);

		if (list[i].n > ret->n)
			*ret = list[i];
		ret->split = split;
	}
	return 0;
}

/*
 * 1 and where most of a directory's files went; 0 if unknown.  Cached, because it looks at every
 * change.
 */
static int moved_to(const struct side *s, struct altered *dir, struct vote *ret)
{
	int r = 0;

	if (!dir->vote) {
		dir->vote = calloc(1, sizeof(*dir->vote));
		if (!dir->vote)
			return -ENOMEM;
		r = count_votes(s, dir->path, strlen(dir->path), dir->vote);
	}
	if (r < 0)
		return r;
	*ret = *dir->vote;
	return ret->n > 0 && !ret->split;
}

int side_follow_dir(const struct side *s, const char *path, char **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf to = BUF_INIT;
	struct altered *gone;
	struct vote moved = { 0 };
	int r = 0;
	size_t n;

	*ret = NULL;
	if (!s->renamed)
		return 0;
	for (n = above(path, strlen(path)); n > 0 && r == 0 && !moved.split; n = above(path, n)) {
		buf_reset(&to);
		if (buf_append(&to, path, n) < 0 || !buf_str(&to))
			return err_nomem(err);
		gone = side_get(s, buf_str(&to));
		if (gone && (dir_part(&gone->after) || !dir_part(&gone->before)))
			return 0;
		r = gone ? moved_to(s, gone, &moved) : 0;
		if (r > 0)
			break;
	}
	if (r <= 0)
		return r < 0 ? err_nomem(err) : 0;
	buf_reset(&to);
	if (buf_append(&to, moved.to, moved.len) < 0 ||
	    buf_append_str(&to, path + n + (moved.len == 0)) < 0 || !buf_str(&to))
		return err_nomem(err);
	*ret = strdup(buf_str(&to));
	return *ret ? 0 : err_nomem(err);
}

/* --- what the three have ---------------------------------------------------------------- */

struct version version_of(const struct altered *a, const struct tree_entry *e, bool linked)
{
	return file_part(e) ? (struct version){ a->path, e, linked, false } : (struct version){ 0 };
}

/* A side's version of the file that was `a` in base. */
static struct version now_of(const struct altered *a)
{
	const struct altered *at = a->to ? a->to : a;
	struct version v = version_of(at, &at->after, at->after_linked);

	v.renumbered = at->renumbered;
	return v;
}

void versions_of(const struct side *ours, const struct altered *t, struct version v[VERSIONS])
{
	const struct altered *o = side_get(ours, t->path);

	v[BASE] = version_of(t, &t->before, t->before_linked);
	v[OURS] = o ? now_of(o) : v[BASE];
	v[THEIRS] = now_of(t);
}
