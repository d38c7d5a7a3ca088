#include "engine/verb/trail-i.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/le.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/vec.h"
#include "engine/find/unborn-i.h"
#include "snapshot/diff/delta.h"

#define LEVELS_MAX 64 /* directories of a path that are remembered */

/* The way to a path in the last snapshot in which it was looked for. */
struct trail_seen {
	char *path; /* owned */
	struct object_id root;
	struct object_id dirs[LEVELS_MAX];
	size_t n;
	int found; /* 0, or -ENOENT */
	struct trail_file file;
};

static uint64_t hash_id(const void *key)
{
	const struct catalog_id *id = key;

	return le64_load(id->b) * 0x9e3779b97f4a7c15u;
}

static bool equal_id(const void *a, const void *b)
{
	return catalog_id_same(a, b);
}

void trail_done(struct trail *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->list[i].clone);
	for (size_t i = 0; i < t->n_acts; i++) {
		free(t->acts[i].clone);
		free(t->acts[i].who);
	}
	if (t->seen)
		free(t->seen->path);
	free(t->seen);
	free(t->list);
	free(t->acts);
	map_done(&t->by_id);
	project_done(&t->project);
	*t = (struct trail){ 0 };
}

/* --- loading ---------------------------------------------------------------------------- */

struct loading {
	struct trail *trail;
	struct unborn unborn;
};

static void loading_done(struct loading *l)
{
	unborn_done(&l->unborn);
}

/* What a snapshot says that was taken before a clone was rolled back. */
static struct catalog_id rolled_back_to(const struct snapshot *s)
{
	static const char before[] = "before rollback to ";
	struct catalog_id id = { 0 };
	const char *hex = NULL;

	if (s->clone && strncmp(s->message, before, strlen(before)) == 0)
		hex = s->message + strlen(before);
	if (hex && strlen(hex) == CATALOG_HEX_SIZE - 1 &&
	    hex_decode(hex, strlen(hex), id.b, sizeof(id.b)) < 0)
		id = (struct catalog_id){ 0 };
	return id;
}

static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct loading *l = ctx;
	struct trail *t = l->trail;
	struct trail_snapshot *one;

	if (!catalog_id_same(&s->project, &t->project.id) || unborn_has(&l->unborn, &s->id))
		return 0;
	if (!VEC_ROOM(t->list, t->n, t->cap))
		return err_nomem(err);
	one = &t->list[t->n];
	*one = (struct trail_snapshot){
		.id = s->id,
		.parent = s->parent,
		.base = s->base,
		.root = s->root,
		.created = s->created,
		.back_to = rolled_back_to(s),
		.clone = s->clone ? strdup(s->clone) : NULL,
	};
	if (s->clone && !one->clone)
		return err_nomem(err);
	t->n++;
	return 0;
}

static int on_receipt(const struct receipt *r, void *ctx, struct err *err)
{
	struct trail *t = ctx;
	struct trail_act *one;

	if (r->state == RECEIPT_BEGUN || !catalog_id_same(&r->project, &t->project.id))
		return 0;
	if (!VEC_ROOM(t->acts, t->n_acts, t->acts_cap))
		return err_nomem(err);
	one = &t->acts[t->n_acts++];
	*one = (struct trail_act){
		.id = r->id,
		.before = r->before,
		.after = r->after,
		.base = r->base,
		.kind = r->kind,
		.created = r->created,
		.clone = r->clone ? strdup(r->clone) : NULL,
		.who = strdup(r->who ? r->who : ""),
	};
	return (r->clone && !one->clone) || !one->who ? err_nomem(err) : 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct trail_snapshot *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

/* Into the table of ids, which points into the list. */
static int enter(struct trail *t, struct err *err)
{
	void *twin;

	if (t->n > 0)
		qsort(t->list, t->n, sizeof(*t->list), newest_first);
	map_done(&t->by_id);
	for (size_t i = 0; i < t->n; i++)
		if (map_add(&t->by_id, &t->list[i].id, &t->list[i], &twin) < 0)
			return err_nomem(err);
	return 0;
}

int trail_add_now(struct trail *t, const struct clone *c, const struct object_id *root,
		  struct err *err)
{
	const size_t last = trail_newest(t, c->name, INT64_MAX);
	const bool own = last != TRAIL_NONE && t->list[last].created > c->created;
	struct trail_snapshot now = {
		.parent = own ? t->list[last].id : *clone_start(c),
		.base = c->base,
		.root = *root,
		.created = INT64_MAX,
		.clone = strdup(c->name),
	};

	if (!now.clone)
		return err_nomem(err);
	if (!VEC_ROOM(t->list, t->n, t->cap)) {
		free(now.clone);
		return err_nomem(err);
	}
	t->list[t->n++] = now;
	return enter(t, err);
}

static int load(struct trail *t, struct err *err)
{
	CLEANUP(loading_done) struct loading l = { .trail = t };
	int r = unborn_load(t->store, &l.unborn, err);

	if (r < 0)
		return r;
	r = snapshot_each(t->store, on_snapshot, &l, err);
	if (r < 0)
		return r;
	r = enter(t, err);
	if (r < 0)
		return r;
	return receipt_each(t->store, on_receipt, t, err);
}

int trail_open(struct engine *e, struct trail *ret, struct err *err)
{
	CLEANUP(trail_done) struct trail t = { .by_id = MAP_INIT(hash_id, equal_id) };
	int r = engine_project(e, &t.store, &t.project, err);

	if (r < 0)
		return r;
	t.seen = calloc(1, sizeof(*t.seen));
	if (!t.seen)
		return err_nomem(err);
	r = load(&t, err);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct trail){ 0 };
	return 0;
}

/* --- the graph -------------------------------------------------------------------------- */

size_t trail_index(const struct trail *t, const struct catalog_id *id)
{
	const struct trail_snapshot *s = map_get(&t->by_id, id);

	return s ? (size_t)(s - t->list) : TRAIL_NONE;
}

size_t trail_newest(const struct trail *t, const char *clone, int64_t when)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct trail_snapshot *s = &t->list[i];

		if (s->created <= when && !s->clone == !clone &&
		    (!clone || strcmp(s->clone, clone) == 0))
			return i;
	}
	return TRAIL_NONE;
}

/* A rollback leads to an existing snapshot, unless it was one of some paths: that is no result of it. */
const struct trail_act *trail_act_of(const struct trail *t, size_t at)
{
	const struct trail_snapshot *s = &t->list[at];

	for (size_t i = 0; i < t->n_acts; i++)
		if (catalog_id_same(&t->acts[i].after, &s->id) &&
		    (t->acts[i].kind == RECEIPT_PROMOTION ||
		     catalog_id_same(&t->acts[i].before, &s->parent)))
			return &t->acts[i];
	return NULL;
}

struct before {
	const struct trail *trail;
	size_t at, n;
	size_t *list;
};

/* Only older ones: a damaged record may name any. */
static void add_before(struct before *b, size_t i)
{
	if (i == TRAIL_NONE || i <= b->at || b->n == TRAIL_BEFORE_MAX)
		return;
	for (size_t k = 0; k < b->n; k++)
		if (b->list[k] == i)
			return;
	b->list[b->n++] = i;
}

/* The project went back to another snapshot after the parent was taken: that comes first. */
static void add_rolled_back(struct before *b, const struct trail_snapshot *s)
{
	const struct trail *t = b->trail;
	const size_t parent = trail_index(t, &s->parent);
	const struct trail_act *last = NULL;

	for (size_t i = 0; i < t->n_acts && !s->clone; i++) {
		const struct trail_act *a = &t->acts[i];

		if (a->kind != RECEIPT_PROMOTION && catalog_id_same(&a->before, &s->parent) &&
		    a->created < s->created && (!last || a->created > last->created))
			last = a;
	}
	if (last && catalog_id_same(&last->after, &s->id))
		add_before(b, trail_index(t, &last->base));
	else if (last)
		add_before(b, trail_index(t, &last->after));
	if (s->clone && parent != TRAIL_NONE)
		add_before(b, trail_index(t, &t->list[parent].back_to));
}

size_t trail_before(const struct trail *t, size_t at, size_t ret[TRAIL_BEFORE_MAX])
{
	const struct trail_snapshot *s = &t->list[at];
	const struct trail_act *act = s->clone ? NULL : trail_act_of(t, at);
	const size_t parent = trail_index(t, &s->parent);
	struct before b = { .trail = t, .at = at, .list = ret };

	if (t->n_acts > 0 || s->clone)
		add_rolled_back(&b, s);
	add_before(&b, parent);
	if (act && act->kind == RECEIPT_PROMOTION && act->clone)
		add_before(&b, trail_newest(t, act->clone, s->created));
	if (s->clone && (parent == TRAIL_NONE || !catalog_id_same(&t->list[parent].base, &s->base)))
		add_before(&b, trail_index(t, &s->base));
	return b.n;
}

/* --- a path ----------------------------------------------------------------------------- */

static int failed(const struct trail *t, size_t at, const char *path, int r, struct err *err)
{
	char hex[CATALOG_HEX_SIZE];

	return err_wrap(err, r, "'%s' of snapshot %s", path, catalog_id_hex(&t->list[at].id, hex));
}

static int remember(struct trail_seen *seen, const char *path, struct err *err)
{
	if (seen->path && strcmp(seen->path, path) == 0)
		return 0;
	free(seen->path);
	*seen = (struct trail_seen){ .path = strdup(path) };
	return seen->path ? 0 : err_nomem(err);
}

/* Is the rest of the way that of the last time? */
static bool is_known(struct trail_seen *seen, size_t level, const struct object_id *dir)
{
	if (level >= LEVELS_MAX)
		return false;
	if (level < seen->n && object_id_equal(&seen->dirs[level], dir))
		return true;
	seen->dirs[level] = *dir;
	return false;
}

/* A symlink is what it points to. */
static struct content content_of(const struct tree_entry *e)
{
	struct content c = { .form = CONTENT_HOLE };
	uint8_t sum[SHA256_SIZE];
	struct sha256 target;

	if (S_ISREG(e->mode))
		return tree_entry_content(e);
	c.size = e->rdev;
	if (S_ISLNK(e->mode)) {
		sha256_begin(&target);
		sha256_add(&target, e->target, e->target_len);
		sha256_end(&target, sum);
		memcpy(c.id.b, sum, sizeof(c.id.b));
	}
	return c;
}

static int walk_to(struct trail *t, const struct root *root, const char *path, struct err *err)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT, link = BUF_INIT;
	struct trail_seen *seen = t->seen;
	struct tree_entry e = root->top;
	struct object_id dir;
	size_t level = 0, n;
	int r = 0;

	for (const char *p = path; *p != '\0' && r == 0; p += n + (p[n] == '/')) {
		n = strcspn(p, "/");
		if (e.form != TREE_DIR || !path_name_valid(p, n)) {
			r = -ENOENT;
			break;
		}
		dir = e.id;
		if (is_known(seen, level, &dir))
			return seen->found;
		level++;
		t->lookups++;
		r = tree_lookup(t->store, &dir, p, n, &e, &hold, err);
	}
	seen->n = level < LEVELS_MAX ? level : LEVELS_MAX;
	if (r == 0 && e.form == TREE_LINK) {
		/* The same directory may stand for another file of that number. */
		seen->n = 0;
		r = root_link(t->store, root, e.ino, &e, &link, err);
	}
	if (r == 0 && e.form == TREE_DIR)
		r = -ENOENT;
	if (r < 0)
		return r;
	seen->file = (struct trail_file){ .mode = e.mode, .content = content_of(&e) };
	return 0;
}

int trail_find(struct trail *t, size_t at, const char *path, struct trail_file *ret,
	       struct err *err)
{
	const struct object_id *id = &t->list[at].root;
	struct trail_seen *seen = t->seen;
	struct root root;
	int r = remember(seen, path, err);

	if (r < 0)
		return r;
	if (!object_id_equal(&seen->root, id)) {
		seen->root = (struct object_id){ 0 };
		r = root_get(t->store, id, &root, err);
		if (r == 0)
			r = walk_to(t, &root, path, err);
		if (r < 0 && r != -ENOENT) {
			seen->n = 0;
			return failed(t, at, path, r, err);
		}
		seen->found = r;
		seen->root = *id;
	}
	if (seen->found == 0)
		*ret = seen->file;
	return seen->found;
}

static bool is_same(const struct trail_file *a, const struct trail_file *b, bool mode)
{
	return content_equal(&a->content, &b->content) &&
	       (a->mode & S_IFMT) == (b->mode & S_IFMT) && (!mode || a->mode == b->mode);
}

int trail_origin(struct trail *t, size_t *at, const char *path, const struct trail_file *file,
		 bool mode, struct err *err)
{
	size_t before[TRAIL_BEFORE_MAX], n;
	struct trail_file f;
	bool moved = true;
	int r;

	while (moved) {
		moved = false;
		n = trail_before(t, *at, before);
		for (size_t i = 0; i < n && !moved; i++) {
			r = trail_find(t, before[i], path, &f, err);
			if (r < 0 && r != -ENOENT)
				return r;
			moved = r == 0 && is_same(file, &f, mode);
			if (moved)
				*at = before[i];
		}
	}
	return 0;
}

static int find_rename(struct trail *t, size_t at, size_t before, const char *path, char **ret,
		       struct err *err)
{
	CLEANUP(delta_done) struct delta d = { 0 };
	const struct delta_options options = { .renames = true };
	int r = delta_find(t->store, &t->list[before].root, &t->list[at].root, &options, &d, err);

	if (r < 0)
		return failed(t, at, path, r, err);
	for (size_t i = 0; i < d.n_files; i++) {
		if (d.files[i].status != DELTA_RENAMED || strcmp(d.files[i].path, path) != 0)
			continue;
		*ret = TAKE_PTR(d.files[i].old_path);
		return 0;
	}
	return -ENOENT;
}

int trail_earlier(struct trail *t, size_t at, size_t before, const char *path, bool renames,
		  struct trail_file *ret, char **ret_path, struct err *err)
{
	AUTO_FREE char *old = NULL;
	int r = trail_find(t, before, path, ret, err);

	if (r == -ENOENT && renames) {
		r = find_rename(t, at, before, path, &old, err);
		if (r == 0)
			r = trail_find(t, before, old, ret, err);
	} else if (r == 0) {
		old = strdup(path);
		if (!old)
			return err_nomem(err);
	}
	if (r < 0)
		return r;
	*ret_path = TAKE_PTR(old);
	return 0;
}
