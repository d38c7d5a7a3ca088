/*
 * Names of ours are read when they are needed, so a draft is as large as the look-ups. Names and
 * directories that were looked up stay in the draft until the end, even if nothing is there:
 * pointers to them stay valid.
 *
 * Names of one file form a group. At the end, each name's old and new state shows which groups
 * gained or lost names.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "snapshot/merge/merge-i.h"

const struct tree_entry *dir_part(const struct tree_entry *e)
{
	return e->mode != 0 && e->form == TREE_DIR ? e : NULL;
}

static void name_done(struct draft_name *n)
{
	free(n->name);
	tree_entry_done(&n->was);
	tree_entry_done(&n->now);
}

static void name_free(struct draft_name *n)
{
	if (n)
		name_done(n);
	free(n);
}
DEFINE_CLEANUP(struct draft_name *, name_free)

static void dir_free(struct draft_dir *dir)
{
	struct draft_name *n;

	for (size_t pos = 0; (n = map_next(&dir->names, &pos));)
		name_free(n);
	map_done(&dir->names);
	free(dir->path);
	free(dir);
}

void draft_done(struct draft *d)
{
	struct draft_group *g;

	VEC_FREE(it, d->dirs, d->n_dirs, dir_free(*it));
	name_done(&d->top);
	for (size_t pos = 0; (g = map_next(&d->groups, &pos));) {
		tree_entry_done(&g->was);
		tree_entry_done(&g->now);
		free(g);
	}
	map_done(&d->groups);
	map_done(&d->by_theirs);
}

/* Replace an entry with a copy, summary included. */
static int replace(struct tree_entry *to, const struct tree_entry *e)
{
	struct tree_entry copy;

	if (tree_entry_copy(e, &copy) < 0)
		return -ENOMEM;
	copy.below = e->below;
	tree_entry_done(to);
	*to = copy;
	return 0;
}

/*
 * New numbers follow the clock, apart from those that clones give: no tree that was stored before
 * has them.
 */
static uint64_t first_ino(int64_t now)
{
	return (uint64_t)3 << 61 | ((uint64_t)now / 1000 & (((uint64_t)1 << 61) - 1));
}

int draft_init(struct draft *d, struct store *s, const struct object_id *ours, int64_t now,
	       struct err *err)
{
	int r;

	*d = (struct draft){
		.store = s,
		.groups = MAP_INIT(map_hash_u64, map_equal_u64),
		.by_theirs = MAP_INIT(map_hash_u64, map_equal_u64),
		.next_ino = first_ino(now),
	};
	r = root_get(s, ours, &d->root, err);
	if (r < 0)
		return r;
	d->top.name = strdup(ROOT_TOP);
	if (!d->top.name || replace(&d->top.was, &d->root.top) < 0 ||
	    replace(&d->top.now, &d->root.top) < 0)
		return err_nomem(err);
	return 0;
}

/* --- names ------------------------------------------------------------------------------ */

/* The directory behind a name that is one; what stood there in ours is its base. */
static int open_dir(struct draft *d, struct draft_name *n, const char *path, size_t path_len,
		    struct err *err)
{
	struct draft_dir *dir;

	if (n->dir)
		return 0;
	if (!VEC_ROOM(d->dirs, d->n_dirs, d->cap_dirs))
		return err_nomem(err);
	dir = calloc(1, sizeof(*dir));
	if (!dir)
		return err_nomem(err);
	dir->as = n;
	dir->depth = n->in ? n->in->depth + 1 : 0;
	dir->names = MAP_INIT(map_hash_str, map_equal_str);
	if (dir_part(&n->was) && !n->emptied)
		dir->base = n->was.id;
	d->dirs[d->n_dirs++] = dir;
	n->dir = dir;
	dir->path = strndup(path, path_len);
	return dir->path ? 0 : err_nomem(err);
}

static int read_name(struct draft *d, struct draft_dir *dir, struct draft_name *n, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct tree_entry e;
	int r = -ENOENT;

	if (!object_id_is_zero(&dir->base))
		r = tree_lookup(d->store, &dir->base, n->name, strlen(n->name), &e, &hold, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_wrap(err, r, "directory '%s'", dir->path);
	if (replace(&n->was, &e) < 0 || replace(&n->now, &e) < 0)
		return err_nomem(err);
	return 0;
}

static int get_name(struct draft *d, struct draft_dir *dir, const char *name, size_t len,
		    struct draft_name **ret, struct err *err)
{
	CLEANUP(name_free_p) struct draft_name *n = NULL;
	AUTO_FREE char *key = strndup(name, len);
	void *existing;
	int r;

	if (!key)
		return err_nomem(err);
	*ret = map_get(&dir->names, key);
	if (*ret)
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_nomem(err);
	n->name = TAKE_PTR(key);
	n->in = dir;
	r = read_name(d, dir, n, err);
	if (r < 0)
		return r;
	if (map_add(&dir->names, n->name, n, &existing) < 0)
		return err_nomem(err);
	*ret = TAKE_PTR(n);
	return 0;
}

int draft_find(struct draft *d, const char *path, struct draft_name **ret, size_t *ret_stop,
	       struct err *err)
{
	struct draft_name *n = &d->top;
	int r;

	for (const char *p = path; *p != '\0';) {
		const size_t len = strcspn(p, "/"), done = p == path ? 0 : (size_t)(p - path) - 1;

		if (!dir_part(&n->now)) {
			if (ret_stop)
				*ret_stop = done;
			return draft_is_there(n) ? -ENOTDIR : -ENOENT;
		}
		r = open_dir(d, n, path, done, err);
		if (r < 0)
			return r;
		r = get_name(d, n->dir, p, len, &n, err);
		if (r < 0)
			return r;
		p += len + (p[len] == '/');
	}
	*ret = n;
	return 0;
}

int draft_set(struct draft_name *n, const struct tree_entry *e, struct draft_group *group,
	      struct err *err)
{
	if (replace(&n->now, e) < 0)
		return err_nomem(err);
	n->group = group;
	return 0;
}

void draft_clear(struct draft_name *n)
{
	tree_entry_done(&n->now);
	n->now = (struct tree_entry){ 0 };
	n->group = NULL;
	n->emptied = true;
	if (n->dir)
		n->dir->base = (struct object_id){ { 0 } };
}

int draft_make_dir(struct draft *d, struct draft_name *n, const char *path,
		   const struct tree_entry *e, struct err *err)
{
	int r = draft_set(n, e, NULL, err);

	return r < 0 ? r : open_dir(d, n, path, strlen(path), err);
}

/* --- directories ------------------------------------------------------------------------ */

int draft_is_empty(struct draft *d, struct draft_name *dir, const char *path, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	const struct draft_name *n;
	struct tree_entry e;
	int r = open_dir(d, dir, path, strlen(path), err);

	if (r < 0)
		return r;
	for (size_t pos = 0; (n = map_next(&dir->dir->names, &pos));)
		if (draft_is_there(n))
			return 0;
	if (object_id_is_zero(&dir->dir->base))
		return 1;
	r = tree_iter_new(d->store, &dir->dir->base, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		char name[TREE_NAME_LEN_MAX + 1] = { 0 };

		/* The names looked up are known to be gone. */
		memcpy(name, e.name, e.name_len);
		if (!map_get(&dir->dir->names, name))
			return 0;
	}
	return r < 0 ? err_wrap(err, r, "directory '%s'", path) : 1;
}

/* Have the names that are of files with several, and the directories that lead to some. */
static int find_links(struct draft *d, struct draft_dir *dir, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	CLEANUP(buf_done) struct buf path = BUF_INIT;
	struct draft_name *n;
	struct tree_entry e;
	int r = 0;

	if (!object_id_is_zero(&dir->base))
		r = tree_iter_new(d->store, &dir->base, &it, err);
	while (it && r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		if (e.form != TREE_LINK && !(e.form == TREE_DIR && e.below.links))
			continue;
		r = get_name(d, dir, e.name, e.name_len, &n, err);
		if (r < 0 || !dir_part(&n->now))
			continue;
		buf_reset(&path);
		if (buf_printf(&path, "%s/%s", dir->path, n->name) < 0 || !buf_str(&path))
			return err_nomem(err);
		r = open_dir(d, n, buf_str(&path), path.len, err);
	}
	return r < 0 ? err_wrap(err, r, "directory '%s'", dir->path) : 0;
}

static bool is_in(const struct draft_dir *dir, const struct draft_name *n)
{
	while (dir && dir->as != n)
		dir = dir->as->in;
	return dir != NULL;
}

/* Every name counts that is one of several, so each of those must have been looked at. */
int draft_remove(struct draft *d, struct draft_name *n, const char *path, struct err *err)
{
	struct draft_name *below;
	int r;

	assert(n->in && dir_part(&n->now));
	r = open_dir(d, n, path, strlen(path), err);
	for (size_t i = 0; i < d->n_dirs && r >= 0; i++)
		if (n->was.below.links && is_in(d->dirs[i], n))
			r = find_links(d, d->dirs[i], err);
	for (size_t i = 0; i < d->n_dirs && r >= 0; i++)
		for (size_t pos = 0;
		     is_in(d->dirs[i], n) && (below = map_next(&d->dirs[i]->names, &pos));)
			draft_clear(below);
	if (r < 0)
		return r;
	draft_clear(n);
	return r;
}

/* --- names of one file ------------------------------------------------------------------ */

static int add_group(struct draft *d, uint64_t ino, struct draft_group **ret, struct err *err)
{
	struct draft_group *g = calloc(1, sizeof(*g));
	void *existing;

	if (!g)
		return err_nomem(err);
	g->ino = ino;
	if (map_add(&d->groups, &g->ino, g, &existing) < 0) {
		free(g);
		return err_nomem(err);
	}
	*ret = g;
	return 0;
}

int draft_group_of_ours(struct draft *d, uint64_t ino, struct draft_group **ret, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct draft_group *g = map_get(&d->groups, &ino);
	struct tree_entry e;
	int r;

	*ret = g && g->was.mode != 0 ? g : NULL;
	if (g)
		return 0;
	r = root_find_link(d->store, &d->root, ino, &e, &hold, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = add_group(d, ino, &g, err);
	if (r < 0)
		return r;
	if (replace(&g->was, &e) < 0 || replace(&g->now, &e) < 0)
		return err_nomem(err);
	g->known = true;
	*ret = g;
	return 0;
}

/* A number that neither a group nor the links of ours have. */
static int free_ino(struct draft *d, uint64_t wanted, uint64_t *ret, struct err *err)
{
	struct draft_group *g;
	int r;

	for (uint64_t ino = wanted;; ino = d->next_ino++) {
		r = draft_group_of_ours(d, ino, &g, err);
		if (r < 0)
			return r;
		if (!g && !map_get(&d->groups, &ino)) {
			*ret = ino;
			return 0;
		}
	}
}

bool draft_has_group(const struct draft *d, uint64_t ino)
{
	const struct draft_group *g = map_get(&d->groups, &ino);

	return g && draft_group_names(g) > 0;
}

int draft_new_ino(struct draft *d, uint64_t *ret, struct err *err)
{
	return free_ino(d, d->next_ino++, ret, err);
}

int draft_group_meets(struct draft *d, struct draft_group *g, uint64_t theirs, struct err *err)
{
	void *existing;

	/* The number is a key while it is in the map. */
	if (g->theirs != 0)
		return 0;
	g->theirs = theirs;
	return map_add(&d->by_theirs, &g->theirs, g, &existing) < 0 ? err_nomem(err) : 0;
}

int draft_group_of_theirs(struct draft *d, uint64_t ino, bool same, struct draft_group **ret,
			  struct err *err)
{
	struct draft_group *g = map_get(&d->by_theirs, &ino);
	uint64_t own;
	int r = 0;

	*ret = g;
	if (g)
		return 0;
	if (same)
		r = draft_group_of_ours(d, ino, &g, err);
	if (r < 0)
		return r;
	if (!g) {
		r = free_ino(d, ino, &own, err);
		if (r < 0)
			return r;
		r = add_group(d, own, &g, err);
	}
	if (r < 0)
		return r;
	r = draft_group_meets(d, g, ino, err);
	if (r < 0)
		return r;
	*ret = g;
	return r;
}

int64_t draft_group_names(const struct draft_group *g)
{
	return (g->was.mode != 0 ? (int64_t)g->was.nlink : 0) + g->names;
}

int draft_group_set(struct draft_group *g, const struct tree_entry *e, struct err *err)
{
	return replace(&g->now, e) < 0 ? err_nomem(err) : 0;
}
