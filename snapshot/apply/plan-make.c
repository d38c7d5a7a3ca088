#include "snapshot/apply/plan-i.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "cowfs/store/root.h"

static void making_done(struct plan_making *m)
{
	plan_done(&m->plan);
	strlist_done(&m->kept);
	map_done(&m->known);
	plan_rules_done(&m->rules);
}

/* --- steps ------------------------------------------------------------------------------ */

/* The next place in one of the two lists. */
static struct plan_step *next_step(struct plan_step **list, size_t n, size_t *cap)
{
	if (!VEC_ROOM(*list, n, *cap))
		return NULL;
	(*list)[n] = (struct plan_step){ .dir = PLAN_NONE, .first = PLAN_NONE };
	return &(*list)[n];
}

/* Either side may be NULL. */
static int fill_step(struct plan_step *s, const char *path, const struct tree_entry *before,
		     const struct tree_entry *after)
{
	s->path = strdup(path);
	if (!s->path || (before && tree_entry_copy(before, &s->before) < 0) ||
	    (after && tree_entry_copy(after, &s->after) < 0))
		return -ENOMEM;
	if (before && after)
		s->act = PLAN_CHANGE;
	else
		s->act = before ? PLAN_REMOVE : PLAN_CREATE;
	return 0;
}

static int add_dir(struct plan_making *m, const char *path, const struct tree_entry *before,
		   const struct tree_entry *after, unsigned what)
{
	struct plan *p = &m->plan;
	struct plan_step *s = next_step(&p->dirs, p->n_dirs, &m->cap_dirs);
	void *existing;

	if (!s)
		return -ENOMEM;
	p->n_dirs++;
	s->what = what;
	if (fill_step(s, path, before, after) < 0 ||
	    map_add(&m->known, s->path, s->path, &existing) < 0)
		return -ENOMEM;
	if (s->act == PLAN_CHANGE && (what & ~(unsigned)DIFF_MTIME) == 0)
		s->act = PLAN_TOUCH;
	return 0;
}

static int add_file(struct plan_making *m, const struct diff_entry *e,
		    const struct tree_entry *before, const struct tree_entry *after)
{
	struct plan *p = &m->plan;
	struct plan_step *s = next_step(&p->files, p->n_files, &m->cap_files);

	if (!s)
		return -ENOMEM;
	p->n_files++;
	s->what = before && after ? e->what : 0;
	s->before_linked = before && e->before_linked;
	s->after_linked = after && e->after_linked;
	return fill_step(s, e->path, before, after);
}

static const struct tree_entry *if_dir(const struct tree_entry *e, bool dir)
{
	return e && (e->form == TREE_DIR) == dir ? e : NULL;
}

/* 1 if it is left alone, whatever is wanted. */
static int is_left(struct plan_making *m, const struct diff_entry *e, struct err *err)
{
	if (plan_leaves(m->options, e->path))
		return 1;
	if (!e->before || e->after)
		return 0;
	if (m->options->leave_unwanted || !m->options->leave_ignored)
		return m->options->leave_unwanted;
	return plan_rules_leave_out(&m->rules, e->path, e->before->form == TREE_DIR, err);
}

static int on_difference(const struct diff_entry *e, void *ctx, struct err *err)
{
	struct plan_making *m = ctx;
	const struct tree_entry *dir[] = { if_dir(e->before, true), if_dir(e->after, true) };
	const struct tree_entry *file[] = { if_dir(e->before, false), if_dir(e->after, false) };
	int r = is_left(m, e, err);

	if (r != 0)
		return r < 0                                             ? r
		       : e->before && strlist_add(&m->kept, e->path) < 0 ? err_nomem(err)
									 : 0;
	/* A tree of ten thousands of levels: nothing that is named by a path could even remove it. */
	if (!e->before && strlen(e->path) >= PATH_MAX)
		return err_set(err, -ECANCELED,
			       "'%.60s...' is so deep that its path has more than %d bytes: no "
			       "program could name it, and it is not made",
			       e->path, PATH_MAX - 1);
	if ((dir[0] || dir[1]) &&
	    add_dir(m, e->path, dir[0], dir[1], dir[0] && dir[1] ? e->what : 0) < 0)
		return err_nomem(err);
	return (file[0] || file[1]) && add_file(m, e, file[0], file[1]) < 0 ? err_nomem(err) : 0;
}

/* --- directories ------------------------------------------------------------------------ */

static int compare_steps(const void *a, const void *b)
{
	return path_compare(((const struct plan_step *)a)->path,
			    ((const struct plan_step *)b)->path);
}

static void hold_done(struct buf (*hold)[2])
{
	buf_done(&(*hold)[0]);
	buf_done(&(*hold)[1]);
}

/* The attributes of a directory that both roots have alike. */
static int look_up(struct plan_making *m, const char *path, struct tree_entry *ret,
		   struct buf hold[2], struct err *err)
{
	struct object_id dir;
	struct root root;
	size_t n, i = 0;
	int r = root_get(m->store, &m->plan.to, &root, err);

	if (r < 0)
		return r;
	*ret = root.top;
	for (const char *p = path; *p != '\0'; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		dir = ret->id;
		i = !i;
		r = tree_lookup(m->store, &dir, p, n, ret, &hold[i], err);
		if (r == -ENOENT || (r >= 0 && ret->form != TREE_DIR))
			return err_set(err, -EBADMSG, "directory '%s' is not in the tree", path);
		if (r < 0)
			return err_wrap(err, r, "'%s'", path);
	}
	return 0;
}

/* A directory that stays as it is, and whose times must too. */
static int need_dir(struct plan_making *m, const char *path, size_t len, struct err *err)
{
	AUTO_FREE char *dir = strndup(path, len);
	CLEANUP(hold_done) struct buf hold[2] = { BUF_INIT, BUF_INIT };
	struct tree_entry e;
	int r;

	if (!dir)
		return err_nomem(err);
	if (map_get(&m->known, dir))
		return 0;
	r = look_up(m, dir, &e, hold, err);
	if (r < 0)
		return r;
	return add_dir(m, dir, &e, &e, 0) < 0 ? err_nomem(err) : r;
}

static size_t parent_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* The directories in which names come, go or change places, and the top, which holds the stage. */
static int need_dirs(struct plan_making *m, struct err *err)
{
	const struct plan *p = &m->plan;
	const size_t n = p->n_dirs;
	int r = 0;

	if (plan_is_empty(p))
		return 0;
	for (size_t i = 0; i < p->n_files && r >= 0; i++)
		r = need_dir(m, p->files[i].path, parent_len(p->files[i].path), err);
	for (size_t i = 0; i < n && r >= 0; i++)
		if (p->dirs[i].act == PLAN_CREATE || p->dirs[i].act == PLAN_REMOVE)
			r = need_dir(m, p->dirs[i].path, parent_len(p->dirs[i].path), err);
	return r < 0 ? r : need_dir(m, "", 0, err);
}

static struct plan_step *find_step(struct plan_step *list, size_t n, char *path)
{
	const struct plan_step key = { .path = path };

	return n > 0 ? bsearch(&key, list, n, sizeof(key), compare_steps) : NULL;
}

/* `above` is `kept`, or leads there. */
static int keep_one(struct plan *p, char *above, const char *kept, struct err *err)
{
	struct plan_step *d = find_step(p->dirs, p->n_dirs, above);
	const struct plan_step *f = find_step(p->files, p->n_files, above);

	if (f && f->act == PLAN_CREATE)
		return err_set(err, -ECANCELED, "'%s' is to become a file, but '%s' is left alone",
			       above, kept);
	if (d && d->act == PLAN_REMOVE) {
		d->act = PLAN_TOUCH;
		d->after = d->before;
	}
	return 0;
}

/* False if nothing is left. */
static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
	return slash != NULL;
}

static int keep_above(struct plan *p, const char *kept, struct err *err)
{
	AUTO_FREE char *above = strdup(kept);
	int r;

	if (!above)
		return err_nomem(err);
	do {
		r = keep_one(p, above, kept, err);
	} while (r >= 0 && cut_last(above));
	return r;
}

/* A directory that holds something left alone stays, too. */
static int keep_all_above(struct plan_making *m, struct err *err)
{
	const struct plan_options *o = m->options;
	int r = 0;

	for (size_t i = 0; i < m->kept.n && r >= 0; i++)
		r = keep_above(&m->plan, m->kept.list[i], err);
	for (size_t i = 0; o->leave_unseen && i < o->n_leave && r >= 0; i++)
		r = keep_above(&m->plan, o->leave[i], err);
	return r;
}

/* --- the whole -------------------------------------------------------------------------- */

/* A regular file of which only attributes differ stays the file that it is. */
static void decide(struct plan_step *s)
{
	if (s->act == PLAN_CHANGE &&
	    (!S_ISREG(s->after.mode) || (s->what & (DIFF_TYPE | DIFF_CONTENT | DIFF_LINKS)) != 0))
		s->act = PLAN_REPLACE;
}

static int find_dir(const struct plan *p, struct plan_step *s, struct err *err)
{
	AUTO_FREE char *parent = strndup(s->path, parent_len(s->path));
	const struct plan_step key = { .path = parent }, *found;

	if (!parent)
		return err_nomem(err);
	found = bsearch(&key, p->dirs, p->n_dirs, sizeof(key), compare_steps);
	assert(found); /* need_dirs() */
	s->dir = (size_t)(found - p->dirs);
	return 0;
}

/* In which of them each name comes, goes or changes. */
static int find_dirs(struct plan *p, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->n_files && r >= 0; i++)
		r = find_dir(p, &p->files[i], err);
	for (size_t i = 0; i < p->n_dirs && r >= 0; i++)
		if (p->dirs[i].act == PLAN_CREATE || p->dirs[i].act == PLAN_REMOVE)
			r = find_dir(p, &p->dirs[i], err);
	return r;
}

int plan_make(struct store *s, const struct object_id *now, const struct object_id *wanted,
	      const struct plan_options *options, struct plan *ret, struct err *err)
{
	CLEANUP(making_done) struct plan_making m = {
		.store = s,
		.options = options,
		.plan = { .from = *now, .to = *wanted, .as_of = options->as_of },
		.known = MAP_INIT(map_hash_str, map_equal_str),
		.rules.dirs = MAP_INIT(map_hash_str, map_equal_str),
	};
	const struct diff_options all = {
		.mtimes = true, .links = true, .deep = true, .twins = options->twins
	};
	struct plan *p = &m.plan;
	int r = plan_rules_open(&m.rules, s, wanted, err);

	if (r < 0)
		return r;
	r = diff_walk(s, now, wanted, &all, on_difference, &m, err);
	if (r < 0)
		return r;
	r = plan_link(&m, err);
	if (r < 0)
		return r;
	r = keep_all_above(&m, err);
	if (r < 0)
		return r;
	r = need_dirs(&m, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_files; i++)
		decide(&p->files[i]);
	if (p->n_dirs > 0)
		qsort(p->dirs, p->n_dirs, sizeof(*p->dirs), compare_steps);
	r = find_dirs(p, err);
	if (r < 0)
		return r;
	*ret = *p;
	*p = (struct plan){ 0 };
	return 0;
}
