/*
 * The order of a history is that of its times.  A clock that was set back must not
 * change which snapshot is the latest, so each is made later than its parent.
 */
#include "engine/history.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "engine/engine-i.h"
#include "snapshot/capture.h"
#include "snapshot/changes.h"

void engine_snapshot_done(struct engine_snapshot *s)
{
	for (size_t i = 0; i < s->n_tags; i++)
		free(s->tags[i]);
	free(s->tags);
	free(s->clone);
	free(s->message);
	*s = (struct engine_snapshot){ 0 };
}

void engine_taken_done(struct engine_taken *t)
{
	engine_snapshot_done(&t->snapshot);
	free(t->project);
	*t = (struct engine_taken){ 0 };
}

void engine_history_done(struct engine_history *h)
{
	for (size_t i = 0; i < h->n; i++)
		engine_snapshot_done(&h->list[i]);
	free(h->list);
	free(h->project);
	*h = (struct engine_history){ 0 };
}

/* --- listing ---------------------------------------------------------------------------- */

static char *id_text(const struct catalog_id *id, char text[ENGINE_ID_SIZE])
{
	_Static_assert(ENGINE_ID_SIZE == CATALOG_HEX_SIZE, "one id, two names for its size");

	text[0] = '\0';
	return catalog_id_is_zero(id) ? text : catalog_id_hex(id, text);
}

int history_entry(const struct snapshot *s, struct engine_snapshot *ret, struct err *err)
{
	CLEANUP(engine_snapshot_done) struct engine_snapshot copy = {
		.created = s->created,
		.files = s->files,
		.bytes = s->bytes,
	};

	id_text(&s->id, copy.id);
	id_text(&s->parent, copy.parent);
	id_text(&s->project, copy.project);
	copy.message = strdup(s->message);
	copy.clone = s->clone ? strdup(s->clone) : NULL;
	if (!copy.message || (s->clone && !copy.clone))
		return err_nomem(err);
	*ret = copy;
	copy = (struct engine_snapshot){ 0 };
	return 0;
}

struct collect {
	const struct catalog_id *project;
	const char *clone;
	struct engine_history history;
	size_t cap;
};

static void collect_done(struct collect *c)
{
	engine_history_done(&c->history);
}

static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct collect *c = ctx;
	struct engine_history *h = &c->history;
	struct engine_snapshot *list;
	int r;

	if (!catalog_id_same(&s->project, c->project) || !s->clone != !c->clone)
		return 0;
	if (s->clone && strcmp(s->clone, c->clone) != 0)
		return 0;
	if (h->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;

		list = reallocarray(h->list, cap, sizeof(*list));
		if (!list)
			return err_nomem(err);
		h->list = list;
		c->cap = cap;
	}
	r = history_entry(s, &h->list[h->n], err);
	if (r >= 0)
		h->n++;
	return r;
}

static int newest_first(const void *a, const void *b)
{
	const struct engine_snapshot *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

int history_load(struct store *s, const struct catalog_id *project, const char *clone,
		 struct engine_history *ret, struct err *err)
{
	CLEANUP(collect_done) struct collect c = { .project = project, .clone = clone };
	int r;

	r = snapshot_each(s, on_snapshot, &c, err);
	if (r < 0)
		return r;
	if (c.history.n > 0)
		qsort(c.history.list, c.history.n, sizeof(*c.history.list), newest_first);
	*ret = c.history;
	c.history = (struct engine_history){ 0 };
	return 0;
}

static int find_clone(struct store *s, const struct catalog_id *project, const char *name,
		      struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	int r;

	r = clone_get(s, name, &clone, err);
	if (r == -ENOENT || (r >= 0 && !catalog_id_same(&clone.project, project)))
		return err_set(err, -ENOENT, "this project has no clone '%s'", name);
	return r;
}

int engine_log(struct engine *e, const char *clone, struct engine_history *ret, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	struct store *s;
	int r;

	r = engine_project(e, &s, &project, err);
	if (r >= 0 && clone)
		r = find_clone(s, &project.id, clone, err);
	if (r >= 0)
		r = history_load(s, &project.id, clone, &h, err);
	if (r >= 0)
		r = tag_fill(s, h.list, h.n, err);
	if (r < 0)
		return r;
	h.project = TAKE_PTR(project.path);
	*ret = h;
	h = (struct engine_history){ 0 };
	return 0;
}

/* --- taking ----------------------------------------------------------------------------- */

static void on_capture(const struct capture_stats *so_far, void *ctx)
{
	const struct engine_watch *watch = ctx;
	struct engine_progress p = {
		.doing = "reading",
		.files = so_far->files,
		.bytes = so_far->bytes,
	};

	watch->fn(&p, watch->ctx);
}

/* One snapshot on its way into the store. */
struct taking {
	struct store *store;
	struct project project;
	struct snapshot snapshot; /* its strings are borrowed from the options */
	struct snapshot parent;   /* all zero: none */
	struct capture_stats stats;
	bool is_new; /* the project */
};

static void taking_done(struct taking *t)
{
	project_done(&t->project);
	snapshot_done(&t->parent);
}

/* What the snapshot will say of itself, but for its tree. */
static int prepare(struct taking *t, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	struct snapshot *snap = &t->snapshot;
	int r;

	t->is_new = catalog_id_is_zero(&t->project.id);
	snap->created = engine_now();
	if (t->is_new) {
		t->project.created = snap->created;
		r = catalog_id_new(&t->project.id, err);
	} else {
		r = history_load(t->store, &t->project.id, NULL, &h, err);
	}
	if (r >= 0 && h.n > 0) {
		r = snapshot_find(t->store, h.list[0].id, &t->parent, err);
		if (r < 0)
			return engine_as_damage(err, r);
		snap->parent = t->parent.id;
		if (snap->created <= t->parent.created)
			snap->created = t->parent.created + 1;
	}
	snap->project = t->project.id;
	return r < 0 ? r : catalog_id_new(&snap->id, err);
}

static int capture(struct engine *e, struct batch *b, const struct engine_take_options *options,
		   struct taking *t, struct err *err)
{
	AUTO_FREE char *store = realpath(e->store_path, NULL);
	const char *const exclude[] = { store };
	struct engine_watch watch = options->watch;
	struct capture_options capture_options = {
		.exclude = exclude,
		.n_exclude = 1,
		.progress = watch.fn ? on_capture : NULL,
		.progress_ctx = &watch,
	};
	int r;

	if (!store)
		return err_sys(err, "store '%s'", e->store_path);
	if (path_is_below(t->project.path, store))
		return err_set(err, -ECANCELED, "'%s' is inside the store", t->project.path);
	r = capture_directory(b, t->project.path, &capture_options, &t->snapshot.root, &t->stats,
			      err);
	if (r < 0)
		return r;
	t->snapshot.files = t->stats.files;
	t->snapshot.bytes = t->stats.bytes;
	return 0;
}

static int put_tag(struct batch *b, const struct taking *t, const char *name, struct err *err)
{
	AUTO_FREE char *full = tag_full_name(&t->project.id, name);
	struct tag tag = { .name = full, .snapshot = t->snapshot.id };

	return full ? tag_put(b, &tag, REF_NEW, err) : err_nomem(err);
}

/* Before the work, so that a name that is taken costs nothing. */
static int check_tag(const struct taking *t, const char *name, struct err *err)
{
	AUTO_FREE char *full = tag_full_name(&t->project.id, name);
	CLEANUP(tag_done) struct tag tag = { 0 };
	char hex[CATALOG_HEX_SIZE];
	int r;

	if (!full)
		return err_nomem(err);
	r = tag_get(t->store, full, &tag, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return err_set(err, -EEXIST, "tag '%s' is taken by snapshot %s", name,
		       catalog_id_hex(&tag.snapshot, hex));
}

static int describe(const struct taking *t, const char *tag, struct engine_taken *ret,
		    struct err *err)
{
	int r;

	ret->registered = t->is_new;
	ret->dirs = t->stats.dirs;
	ret->project = strdup(t->project.path);
	if (!ret->project)
		return err_nomem(err);
	r = history_entry(&t->snapshot, &ret->snapshot, err);
	if (r >= 0 && tag)
		r = tag_append(&ret->snapshot, tag, err);
	return r;
}

static int take(struct engine *e, const struct engine_take_options *options, struct taking *t,
		struct engine_taken *ret, struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	int r;

	r = batch_begin(t->store, &b, err);
	if (r >= 0)
		r = capture(e, b, options, t, err);
	if (r >= 0 && t->is_new)
		r = project_put(b, &t->project, REF_NEW, err);
	if (r >= 0)
		r = snapshot_put(b, &t->snapshot, REF_NEW, err);
	if (r >= 0 && options->tag)
		r = put_tag(b, t, options->tag, err);
	if (r >= 0)
		r = describe(t, options->tag, ret, err);
	if (r >= 0)
		r = batch_commit(b, BATCH_DURABLE, err);
	return r;
}

/* The snapshot is taken; that its parent cannot be read is no reason to deny it. */
static void compare(const struct taking *t, struct engine_taken *taken)
{
	struct changes changes;
	struct err err = { 0 };

	if (catalog_id_is_zero(&t->parent.id))
		return;
	if (changes_count(t->store, &t->parent.root, &t->snapshot.root, &changes, &err) < 0) {
		log_warn("comparing with the snapshot before: %s, continuing", err.msg);
		return;
	}
	taken->added = changes.added;
	taken->modified = changes.modified;
	taken->deleted = changes.deleted;
	taken->compared = true;
}

/* A store is made only once it is clear what goes into it. */
static int choose(struct engine *e, const char *dir, struct taking *t, struct err *err)
{
	int r;

	r = engine_store(e, STORE_WRITE, &t->store, err);
	if (r < 0 && r != -ENOENT)
		return r;
	r = project_choose(e, t->store, dir, &t->project, err);
	if (r >= 0)
		r = engine_store(e, STORE_CREATE, &t->store, err);
	return r;
}

int engine_take(struct engine *e, const struct engine_take_options *options,
		struct engine_taken *ret, struct err *err)
{
	AUTO_FREE char *message = strdup(options->message ? options->message : "");
	CLEANUP(engine_taken_done) struct engine_taken taken = { 0 };
	CLEANUP(taking_done) struct taking t = { .snapshot.message = message };
	uint64_t start = engine_clock_ms();
	int r;

	if (!message)
		return err_nomem(err);
	r = options->tag ? tag_check_name(options->tag, err) : 0;
	if (r >= 0)
		r = choose(e, options->dir, &t, err);
	if (r >= 0)
		r = prepare(&t, err);
	if (r >= 0 && options->tag)
		r = check_tag(&t, options->tag, err);
	if (r >= 0)
		r = take(e, options, &t, &taken, err);
	if (r < 0)
		return r;
	compare(&t, &taken);
	taken.elapsed_ms = engine_clock_ms() - start;
	*ret = taken;
	taken = (struct engine_taken){ 0 };
	return 0;
}
