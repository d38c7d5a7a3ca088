/*
 * Directories are written deepest first, each as an edit of our directory, so names that were not
 * looked up are taken over unread. Before that, the names of linked files are counted: a file of
 * theirs that ends with a single name becomes an ordinary file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "cowfs/store/tree-edit.h"
#include "snapshot/merge/merge-i.h"

static const struct cache_limits limits = { .chunk_bytes = 1 << 16, .meta_bytes = 4 << 20 };

struct writing {
	struct merging *m;
	struct cache *cache;      /* owned */
	struct tree_change *list; /* owned; one directory's */
	struct tree_entry *entry; /* owned; that they name */
	size_t n, cap;
};

static void writing_done(struct writing *w)
{
	cache_free(w->cache);
	free(w->list);
	free(w->entry);
}

/* --- names of one file ------------------------------------------------------------------ */

static uint64_t label(const struct tree_entry *e, const struct draft_group *g)
{
	return g ? g->ino : e->form == TREE_LINK ? e->ino : 0;
}

static int need_group(struct draft *d, uint64_t ino, struct draft_group **ret, struct err *err)
{
	int r;

	*ret = map_get(&d->groups, &ino);
	if (*ret)
		return 0;
	r = draft_group_of_ours(d, ino, ret, err);
	if (r < 0)
		return r;
	if (!*ret)
		return err_set(err, -EBADMSG,
			       "the file with inode %" PRIu64 " is not among the links", ino);
	return r;
}

static int count_name(struct draft *d, const struct draft_name *n, struct err *err)
{
	const uint64_t was = label(&n->was, NULL), now = label(&n->now, n->group);
	struct draft_group *g;
	int r = 0;

	if (was == now)
		return 0;
	if (was != 0) {
		r = need_group(d, was, &g, err);
		if (r < 0)
			return r;
		g->names--;
	}
	if (now != 0) {
		r = need_group(d, now, &g, err);
		if (r < 0)
			return r;
		g->names++;
	}
	return r;
}

static int count_names(struct draft *d, struct err *err)
{
	const struct draft_name *n;
	int r = 0;

	for (size_t i = 0; i < d->n_dirs; i++)
		for (size_t pos = 0; r >= 0 && (n = map_next(&d->dirs[i]->names, &pos));)
			r = count_name(d, n, err);
	return r;
}

static bool is_alone(const struct draft_group *g)
{
	return g->was.mode == 0 && draft_group_names(g) == 1;
}

/* --- directories ------------------------------------------------------------------------ */

/* The entry to write for a name; its strings are borrowed. */
static struct tree_entry standing(const struct draft_name *n)
{
	struct tree_entry e = n->now;

	if (n->group && is_alone(n->group)) {
		/* In theirs it has other names, and its number may belong to another file here. */
		e = n->group->now;
		e.ino = n->group->ino;
		e.nlink = 0;
	} else if (n->group) {
		e = (struct tree_entry){
			.form = TREE_LINK,
			.mode = n->group->now.mode & S_IFMT,
			.ino = n->group->ino,
		};
	}
	e.name = n->name;
	e.name_len = strlen(n->name);
	return e;
}

static bool is_changed(const struct draft_name *n, const struct tree_entry *e)
{
	struct tree_entry was = n->was;

	was.name = e->name;
	was.name_len = e->name_len;
	return !tree_entry_equal(&was, e);
}

static int by_name(const void *a, const void *b)
{
	const struct tree_change *x = a, *y = b;

	return tree_name_compare(x->name, x->name_len, y->name, y->name_len);
}

static int make_room(struct writing *w, size_t n, struct err *err)
{
	struct tree_change *list;
	struct tree_entry *entry;

	if (n <= w->cap)
		return 0;
	list = reallocarray(w->list, n, sizeof(*list));
	if (!list)
		return err_nomem(err);
	w->list = list;
	entry = reallocarray(w->entry, n, sizeof(*entry));
	if (!entry)
		return err_nomem(err);
	w->entry = entry;
	w->cap = n;
	return 0;
}

/* How many more subdirectories the directory has than in base. */
static int64_t collect(struct writing *w, const struct draft_dir *dir)
{
	const bool had = !object_id_is_zero(&dir->base);
	const struct draft_name *n;
	int64_t dirs = 0;

	w->n = 0;
	for (size_t pos = 0; (n = map_next(&dir->names, &pos));) {
		struct tree_entry *e = &w->entry[w->n];

		dirs += (dir_part(&n->now) != NULL) - (had && dir_part(&n->was));
		if (!draft_is_there(n) && (!had || n->was.mode == 0))
			continue;
		*e = standing(n);
		if (had && is_changed(n, e))
			w->list[w->n] = (struct tree_change){ e->name, e->name_len, NULL };
		else if (!had)
			w->list[w->n] = (struct tree_change){ e->name, e->name_len, e };
		else
			continue;
		if (draft_is_there(n))
			w->list[w->n].entry = e;
		w->n++;
	}
	VEC_SORT(w->list, w->n, by_name);
	return dirs;
}

static int write_dir(struct writing *w, struct draft_dir *dir, struct err *err)
{
	struct tree_entry *as = &dir->as->now;
	const bool had = !object_id_is_zero(&dir->base);
	int64_t dirs;
	int r;

	if (!dir_part(as))
		return 0;
	r = make_room(w, dir->names.n + 1, err);
	if (r < 0)
		return r;
	dirs = collect(w, dir);
	if (had && w->n == 0)
		return 0;
	r = tree_edit(w->m->batch, w->cache, &dir->base, w->list, w->n, &as->id, &as->below, err);
	if (r < 0)
		return err_wrap(err, r, "directory '%s'", dir->path);
	if (!had)
		as->nlink = (uint32_t)(2 + dirs);
	else if (as->nlink != 0)
		as->nlink = (uint32_t)(as->nlink + dirs);
	return 0;
}

static int deepest_first(const void *a, const void *b)
{
	const struct draft_dir *x = *(struct draft_dir *const *)a,
			       *y = *(struct draft_dir *const *)b;

	return (x->depth < y->depth) - (x->depth > y->depth);
}

/* --- the links tree --------------------------------------------------------------------- */

static int group_by_ino(const void *a, const void *b)
{
	const uint64_t x = (*(struct draft_group *const *)a)->ino;
	const uint64_t y = (*(struct draft_group *const *)b)->ino;

	return (x > y) - (x < y);
}

static bool group_changed(const struct draft_group *g)
{
	if (g->was.mode == 0)
		return draft_group_names(g) > 1;
	return g->names != 0 || !tree_entry_equal(&g->was, &g->now);
}

static int write_links(struct writing *w, struct root *root, struct err *err)
{
	struct draft *d = &w->m->draft;
	AUTO_FREE struct draft_group **groups = calloc(d->groups.n + 1, sizeof(*groups));
	AUTO_FREE char(*names)[ROOT_LINK_NAME_SIZE] = calloc(d->groups.n + 1, sizeof(*names));
	struct draft_group *g;
	size_t n = 0;
	int r;

	if (!groups || !names)
		return err_nomem(err);
	for (size_t pos = 0; (g = map_next(&d->groups, &pos));) {
		/* They are named and counted by the tree that they stand in. */
		g->now.ino = g->ino;
		g->now.nlink = g->was.nlink;
		if (group_changed(g))
			groups[n++] = g;
	}
	if (n == 0)
		return 0;
	r = make_room(w, n, err);
	if (r < 0)
		return r;
	qsort(groups, n, sizeof(*groups), group_by_ino);
	for (size_t i = 0; i < n; i++) {
		const char *name = root_link_name(groups[i]->ino, names[i]);

		w->entry[i] = groups[i]->now;
		w->entry[i].name = name;
		w->entry[i].name_len = strlen(name);
		w->entry[i].nlink = (uint32_t)draft_group_names(groups[i]);
		w->list[i] =
		    (struct tree_change){ name, strlen(name),
					  draft_group_names(groups[i]) > 0 ? &w->entry[i] : NULL };
	}
	r = tree_edit(w->m->batch, w->cache, &d->root.links, w->list, n, &root->links,
		      &root->in_links, err);
	if (r < 0)
		return err_wrap(err, r, "files with several names");
	if (root->in_links.files == 0)
		root->links = (struct object_id){ { 0 } };
	return 0;
}

int merge_write(struct merging *m, struct err *err)
{
	CLEANUP(writing_done) struct writing w = { .m = m };
	struct draft *d = &m->draft;
	struct root root = d->root;
	int r = cache_new(m->store, &limits, &w.cache, err);

	if (r < 0)
		return r;
	r = count_names(d, err);
	if (r < 0)
		return r;
	r = merge_give_numbers(m, err);
	if (r < 0)
		return r;
	VEC_SORT(d->dirs, d->n_dirs, deepest_first);
	for (size_t i = 0; i < d->n_dirs && r >= 0; i++)
		r = write_dir(&w, d->dirs[i], err);
	if (r < 0)
		return r;
	r = write_links(&w, &root, err);
	if (r < 0)
		return r;
	root.top = d->top.now;
	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	return root_put(m->batch, &root, &m->result.root, err);
}
