#include "engine/act/deliver-i.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cowfs/store/pin.h"
#include "cowfs/store/root.h"
#include "engine/act/pick-i.h"
#include "engine/act/system-i.h"
#include "engine/find/part-i.h"

bool deliver_is(const struct promoting *p)
{
	return p->target.path != NULL;
}

static int by_path(const void *a, const void *b)
{
	return path_compare(*(char *const *)a, *(char *const *)b);
}

/* --- which paths ------------------------------------------------------------------------ */

static int add_source(struct promoting *p, const char *path, struct err *err)
{
	AUTO_FREE char *clean = path_clean("/", path);
	const char *name;

	if (!clean)
		return err_nomem(err);
	if (path[0] == '/')
		return err_set(err, -EINVAL, "'%s' does not count from the top of the project",
			       path);
	if (clean[1] == '\0')
		return err_set(err, -EINVAL, "'%s' is all of the clone: name paths in it", path);
	name = path_base(clean);
	if (strcmp(name, ".git") == 0)
		return err_set(err, -EINVAL, "'%s' is git's own and goes nowhere", path);
	if (strlist_has(&p->names, name))
		return err_set(err, -EINVAL, "two paths would both become '%s/%s'",
			       p->options->asked->to, name);
	return strlist_add(&p->sources, clean + 1) < 0 || strlist_add(&p->names, name) < 0
		   ? err_nomem(err)
		   : 0;
}

static int choose_sources(struct promoting *p, struct err *err)
{
	const struct engine_list *paths = &p->options->asked->paths;
	int r = 0;

	if (paths->n == 0)
		return err_set(err, -EINVAL,
			       "option '--to' needs '--path': name the paths to copy to '%s'",
			       p->options->asked->to);
	if (p->options->asked->excludes.n > 0)
		return err_set(err, -EINVAL, "--exclude does not go with --to");
	for (size_t i = 0; i < paths->n && r >= 0; i++)
		r = add_source(p, paths->items[i], err);
	if (r < 0)
		return r;
	qsort(p->sources.list, p->sources.n, sizeof(*p->sources.list), by_path);
	strlist_sort(&p->names);
	for (size_t i = 1; i < p->sources.n; i++) {
		const char *above = p->sources.list[i - 1], *path = p->sources.list[i];
		const size_t len = strlen(above);

		if (strncmp(path, above, len) == 0 && path[len] == '/')
			return err_set(err, -EINVAL, "'%s' goes with '%s' already", path, above);
	}
	return 0;
}

/* --- where to --------------------------------------------------------------------------- */

static int refuse_link(const char *link, const char *path, struct err *err)
{
	AUTO_FREE char *real = realpath(path, NULL);

	return err_set(err, -ECANCELED, "'%s' is a symlink, and nothing is put behind one%s%s%s",
		       link, real ? ": name '" : "", real ? real : "", real ? "'" : "");
}

/* Every directory on the way is one: a link could lead elsewhere tomorrow. */
static int refuse_links(const char *path, struct stat *ret, struct err *err)
{
	AUTO_FREE char *part = strdup(path);
	char *slash = part;

	if (!part)
		return err_nomem(err);
	do {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (lstat(part, ret) < 0)
			return err_sys(err, "directory '%s'", part);
		if (S_ISLNK(ret->st_mode))
			return refuse_link(part, path, err);
		if (slash)
			*slash = '/';
	} while (slash);
	return S_ISDIR(ret->st_mode) ? 0 : err_set(err, -ENOTDIR, "'%s' is no directory", path);
}

struct near {
	const struct promoting *p;
	const char *to;
};

/* Would a name that goes there replace `path`, or a directory above it? */
static int refuse_over(const struct near *n, const char *path, const char *what, struct err *err)
{
	const struct strlist *names = &n->p->names;

	for (size_t i = 0; i < names->n; i++) {
		AUTO_FREE char *at = path_join(n->to, names->list[i]);

		if (!at)
			return err_nomem(err);
		if (path_is_below(path, at))
			return err_set(err, -ECANCELED, "'%s' is or holds %s '%s'", at, what, path);
	}
	return 0;
}

static int refuse_project(const struct project *p, void *ctx, struct err *err)
{
	const struct near *n = ctx;

	/* Everything is in '/', to which nothing comes but what is named. */
	if (p->hidden != PROJECT_SHOWN || system_is(p->path))
		return 0;
	if (catalog_id_same(&p->id, &n->p->project.id) && path_is_below(n->to, p->path))
		return err_set(err, -ECANCELED,
			       "'%s' is in the project itself: without --to every path comes to "
			       "its own place",
			       n->to);
	if (path_is_below(n->to, p->path))
		return err_set(err, -ECANCELED,
			       "'%s' is in the project '%s', which only clones of its own change",
			       n->to, p->path);
	return refuse_over(n, p->path, "the project", err);
}

static int check_target(struct promoting *p, const char *to, struct stat *ret, struct err *err)
{
	const struct near n = { .p = p, .to = to };
	const char *store = p->task->host->dir;
	int r = task_may_read(p->task, to, err);

	if (r < 0)
		return r;
	if (path_is_below(to, store))
		return err_set(err, -ECANCELED, "'%s' is in the store", to);
	r = refuse_over(&n, store, "the store", err);
	if (r < 0)
		return r;
	r = project_each(p->store, refuse_project, (void *)(uintptr_t)&n, err);
	return r < 0 ? r : refuse_links(to, ret, err);
}

/* --- what is captured ------------------------------------------------------------------- */

static int watch(struct promoting *p, const char *name, struct err *err)
{
	return !strlist_has(&p->watched, name) && strlist_add(&p->watched, name) < 0
		   ? err_nomem(err)
		   : 0;
}

static int watch_tree(struct promoting *p, const struct object_id *root, struct err *err)
{
	CLEANUP(tree_iter_free_p) struct tree_iter *it = NULL;
	struct tree_entry e;
	struct root from;
	int r = root_get(p->store, root, &from, err);

	if (r < 0)
		return r;
	r = tree_iter_new(p->store, &from.top.id, &it, err);
	while (r >= 0 && (r = tree_iter_next(it, &e, err)) > 0) {
		AUTO_FREE char *name = strndup(e.name, e.name_len);

		r = name ? watch(p, name, err) : err_nomem(err);
	}
	return r;
}

/* --- what is meant ---------------------------------------------------------------------- */

static int find_promotion(struct promoting *p, struct err *err)
{
	const char *to = p->options->asked->to;
	struct stat st;
	int r;

	if (to[0] != '/')
		return err_set(err, -EINVAL, "'%s' is no absolute path", to);
	r = choose_sources(p, err);
	if (r < 0)
		return r;
	r = check_target(p, to, &st, err);
	if (r < 0)
		return r;
	p->place = (struct sys_place){ .dev = st.st_dev, .ino = st.st_ino };
	r = project_hidden_at(&p->task->engine, p->store, to, PROJECT_TARGET, &p->target, err);
	for (size_t i = 0; i < p->names.n && r >= 0; i++)
		r = watch(p, p->names.list[i], err);
	return r;
}

/* Add what the snapshot holds; one that is gone is reported by the undo itself. */
static int watch_state(struct promoting *p, const struct catalog_id *id, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	int r = snapshot_get(p->store, id, &s, err);

	return r == -ENOENT ? 0 : r < 0 ? r : watch_tree(p, &s.root, err);
}

static int find_undo(struct promoting *p, struct err *err)
{
	CLEANUP(receipt_done) struct receipt of = { 0 };
	struct stat st;
	int r = receipt_find(p->store, &p->project, p->options->receipt, &of, NULL);

	/* Whatever is wrong with it is said when the project's turn has come. */
	if (r < 0 || catalog_id_is_zero(&of.target))
		return 0;
	r = engine_as_damage(err, project_get(p->store, &of.target, &p->target, err));
	if (r < 0)
		return r;
	r = watch_state(p, &of.before, err);
	if (r < 0)
		return r;
	r = watch_state(p, &of.after, err);
	if (r < 0)
		return r;
	r = check_target(p, p->target.path, &st, err);
	if (r < 0)
		return r;
	p->place = (struct sys_place){ .dev = st.st_dev, .ino = st.st_ino };
	return r;
}

int deliver_find(struct promoting *p, struct err *err)
{
	if (p->options->undo)
		return find_undo(p, err);
	return p->options->asked->to ? find_promotion(p, err) : 0;
}

/* --- what was put there ----------------------------------------------------------------- */

static int find_name(struct promoting *p, const struct object_id *root, const char *name,
		     struct tree_entry *ret, struct buf *hold, struct err *err)
{
	struct root from;
	int r = root_get(p->store, root, &from, err);

	if (r < 0)
		return r;
	r = tree_lookup(p->store, &from.top.id, name, strlen(name), ret, hold, err);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* 1 if the promotion put something else under the name than was there. */
static int has_put(struct promoting *p, const struct object_id *before,
		   const struct object_id *after, const char *name, struct err *err)
{
	CLEANUP(buf_done) struct buf before_hold = BUF_INIT, after_hold = BUF_INIT;
	struct tree_entry was, is;
	int r = find_name(p, after, name, &is, &after_hold, err), x;

	if (r <= 0)
		return r;
	x = find_name(p, before, name, &was, &before_hold, err);
	return x < 0 ? x : x == 0 || !tree_entry_equal(&was, &is);
}

struct last {
	struct promoting *p;
	const char *name;
	struct object_id root; /* that the name has it in; zero: none yet */
	int64_t created;
};

static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot before = { 0 }, after = { 0 };
	struct last *l = ctx;
	int x;

	if (r->kind != RECEIPT_PROMOTION || r->state != RECEIPT_DONE || r->created < l->created ||
	    !catalog_id_same(&r->target, &l->p->target.id))
		return 0;
	x = snapshot_get(l->p->store, &r->before, &before, err);
	if (x >= 0)
		x = snapshot_get(l->p->store, &r->after, &after, err);
	if (x < 0)
		return x == -ENOENT ? 0 : x; /* a gc --keep-last has forgotten it */
	x = has_put(l->p, &before.root, &after.root, l->name, err);
	if (x <= 0)
		return x;
	l->root = after.root;
	l->created = r->created;
	return 0;
}

/* --- the trees -------------------------------------------------------------------------- */

/* One name of a tree to be: what stands at `path` in `from`. */
struct piece {
	const char *path; /* borrowed; NULL: the tree lacks it */
	struct root from; /* from pick_paths(), so no file in it has several names */
};

static int pick(struct batch *b, const struct object_id *tree, const struct strlist *paths,
		struct root *ret, struct err *err)
{
	struct root from;
	int r = batch_pin(b, tree, err);

	if (r < 0)
		return r;
	r = root_get(batch_store(b), tree, &from, err);
	return r < 0 ? r : pick_paths(b, &from, paths, ret, err);
}

/* What a promotion put there last, unless somebody has removed it: then it comes anew. */
static int pick_base(struct promoting *p, struct batch *b, const char *name, struct piece *ret,
		     struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	CLEANUP(strlist_done) struct strlist one = { 0 };
	struct last last = { .p = p, .name = name };
	struct tree_entry unused;
	int r = find_name(p, &p->landing.now.root, name, &unused, &hold, err);

	if (r <= 0 || catalog_id_is_zero(&p->target.id))
		return r;
	r = receipt_each(p->store, on_receipt, &last, err);
	if (r < 0 || object_id_is_zero(&last.root))
		return r;
	if (strlist_add(&one, name) < 0)
		return err_nomem(err);
	ret->path = name;
	return pick(b, &last.root, &one, &ret->from, err);
}

/* Of what lies above the part or beside it the clone has not all, and the rest would seem to be removed. */
static int check_part(const struct promoting *p, struct err *err)
{
	for (size_t i = 0; i < p->sources.n; i++)
		if (!part_covers(p->base.part, p->sources.list[i]))
			return err_set(
			    err, -EINVAL,
			    "clone '%.64s' has only '%.80s', and '/%.80s' is not in that",
			    p->clone.name, p->base.part, p->sources.list[i]);
	return 0;
}

static int pick_theirs(struct promoting *p, struct batch *b, struct root *ret, struct err *err)
{
	int r = check_part(p, err);

	if (r < 0)
		return r;
	r = pick(b, &p->whole, &p->sources, ret, err);

	if (r == -ENOENT)
		return err_wrap(err, r, "clone '%s' (--path with --to is no pattern)",
				p->clone.name);
	return r < 0 ? err_wrap(err, r, "clone '%s'", p->clone.name) : 0;
}

static const char *source_of(const struct promoting *p, const char *name)
{
	for (size_t i = 0; i < p->sources.n; i++)
		if (strcmp(path_base(p->sources.list[i]), name) == 0)
			return p->sources.list[i];
	assert(!"a name without a path");
	return NULL;
}

static int add_piece(struct store *s, struct tree_builder *to, const struct piece *piece,
		     uint32_t *nlink, struct err *err)
{
	struct buf hold[2] = { BUF_INIT, BUF_INIT };
	struct tree_entry e = piece->from.top;
	const char *path = piece->path;
	int r = 0;

	for (size_t n; r >= 0 && *path != '\0'; path += n + (path[n] == '/')) {
		const struct object_id dir = e.id;

		n = strcspn(path, "/");
		r = tree_lookup(s, &dir, path, n, &e, &hold[0], err);
		buf_swap(&hold[0], &hold[1]);
	}
	if (r >= 0) {
		*nlink += e.form == TREE_DIR;
		r = tree_builder_add(to, &e, err);
	}
	buf_done(&hold[0]);
	buf_done(&hold[1]);
	return r;
}

/* A root with these pieces, whose top is otherwise that of the target. */
static int put_tree(struct promoting *p, const struct piece *pieces, const struct root *now,
		    struct object_id *ret, struct err *err)
{
	CLEANUP(tree_builder_free_p) struct tree_builder *to = NULL;
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct root root = { .top = now->top };
	int r = batch_begin(p->store, &b, err);

	if (r < 0)
		return r;
	r = tree_builder_new(b, &to, err);
	root.top.nlink = 2;
	for (size_t i = 0; r >= 0 && i < p->names.n; i++)
		if (pieces[i].path)
			r = add_piece(p->store, to, &pieces[i], &root.top.nlink, err);
	if (r < 0)
		return r;
	r = tree_builder_finish(to, &root.top.id, &root.top.below, err);
	if (r < 0)
		return r;
	r = root_put(b, &root, ret, err);
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	return r < 0 ? r : store_pin(p->store, OBJECT_TREE, ret, err);
}

/* Pick all pieces in one batch, which keeps them until the trees are put. */
static int put_trees(struct promoting *p, const struct root *now, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	AUTO_FREE struct piece *base = calloc(p->names.n, sizeof(*base));
	AUTO_FREE struct piece *theirs = calloc(p->names.n, sizeof(*theirs));
	struct root picked;
	int r = base && theirs ? batch_begin(p->store, &b, err) : err_nomem(err);

	if (r < 0)
		return r;
	r = pick_theirs(p, b, &picked, err);
	for (size_t i = 0; r >= 0 && i < p->names.n; i++) {
		theirs[i] = (struct piece){ source_of(p, p->names.list[i]), picked };
		r = pick_base(p, b, p->names.list[i], &base[i], err);
	}
	if (r < 0)
		return r;
	r = batch_commit(b, BATCH_SAFE, err);
	if (r < 0)
		return r;
	r = put_tree(p, base, now, &p->base.root, err);
	if (r < 0)
		return r;
	p->pinned_base = p->base.root;
	r = put_tree(p, theirs, now, &p->theirs_root, err);
	if (r < 0)
		return r;
	p->pinned_theirs = p->theirs_root;
	return r;
}

static int find_target_again(struct promoting *p, struct err *err)
{
	struct project found = { 0 };
	int r = project_hidden_at(&p->task->engine, p->store, p->target.path, PROJECT_TARGET,
				  &found, err);

	if (r < 0)
		return r;
	project_done(&p->target);
	p->target = found;
	return 0;
}

int deliver_trees(struct promoting *p, struct err *err)
{
	struct root now;
	struct stat st;
	int r;

	/* What was captured is the directory that no link leads to. */
	r = check_target(p, p->target.path, &st, err);
	if (r < 0)
		return r;
	/* The task that had the turn before may have registered it. */
	if (catalog_id_is_zero(&p->target.id))
		r = find_target_again(p, err);
	if (r < 0)
		return r;
	r = root_get(p->store, &p->landing.now.root, &now, err);
	if (r < 0)
		return r;
	if (now.top.ino != st.st_ino || st.st_dev != p->place.dev || st.st_ino != p->place.ino)
		return err_set(err, -EBUSY, "'%s' became another directory just now",
			       p->target.path);
	return p->options->undo ? 0 : put_trees(p, &now, err);
}

int deliver_act(struct promoting *p, struct landing_act *act, struct err *err)
{
	int r = 0;

	if (!deliver_is(p))
		return 0;
	if (catalog_id_is_zero(&p->target.id)) {
		r = catalog_id_new(&p->target.id, err);
		p->target.created = engine_now();
		act->fresh = &p->target;
	}
	act->owner = &p->project;
	act->place = &p->place;
	act->receipt.target = p->target.id;
	return r;
}
