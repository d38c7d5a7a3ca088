#include "engine/api/history.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "engine/find/engine-i.h"
#include "engine/find/part-i.h"
#include "engine/find/unborn-i.h"

/* --- listing ---------------------------------------------------------------------------- */

/* Records from before version 4 do not say, so we go by the messages that only we write. */
bool history_is_automatic(const struct snapshot *s)
{
	static const char *const ours[] = { "before rollback to ", "before promotion of ",
					    "before undo of ",     "before rebase onto ",
					    "before run ",         "rebase of " };

	if (s->made != SNAPSHOT_MADE_UNKNOWN)
		return s->made == SNAPSHOT_MADE_AUTOMATICALLY;
	return VEC_HAS(it, ours, ARRAY_LEN(ours), strncmp(s->message, *it, strlen(*it)) == 0);
}

/* A snapshot of a part cannot stand for the whole project as it was. */
static bool is_partial(const struct engine_snapshot *s)
{
	return !s->clone && s->part;
}

static void drop_partial(struct engine_history *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (is_partial(&h->list[i]))
			engine_snapshot_done(&h->list[i]);
		else
			h->list[n++] = h->list[i];
	}
	h->n = n;
}

void history_keep_users(struct engine_history *h)
{
	size_t n = 0;

	drop_partial(h);
	for (size_t i = 0; i < h->n; i++)
		n += !h->list[i].automatic;
	if (n == 0)
		return;
	n = 0;
	for (size_t i = 0; i < h->n; i++) {
		if (h->list[i].automatic)
			engine_snapshot_done(&h->list[i]);
		else
			h->list[n++] = h->list[i];
	}
	h->n = n;
}

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
		.automatic = history_is_automatic(s),
	};

	id_text(&s->id, copy.id);
	id_text(&s->parent, copy.parent);
	id_text(&s->project, copy.project);
	copy.message = strdup(s->message);
	copy.clone = s->clone ? strdup(s->clone) : NULL;
	copy.part = s->part ? strdup(s->part) : NULL;
	copy.meta = s->meta ? strdup(s->meta) : NULL;
	if (!copy.message || (s->clone && !copy.clone) || (s->part && !copy.part) ||
	    (s->meta && !copy.meta))
		return err_nomem(err);
	*ret = TAKE_STRUCT(copy);
	return 0;
}

struct collect {
	const struct catalog_id *project;
	const struct clone *clone;
	bool all; /* of the project and of all its clones */
	struct unborn unborn;
	struct engine_history history;
	size_t cap;
};

static void collect_done(struct collect *c)
{
	engine_history_done(&c->history);
	unborn_done(&c->unborn);
}

static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct collect *c = ctx;
	struct engine_history *h = &c->history;
	int r;

	if (!catalog_id_same(&s->project, c->project) || (!c->all && !s->clone != !c->clone) ||
	    unborn_has(&c->unborn, &s->id))
		return 0;
	/* An earlier clone of the same name may have left tagged snapshots. */
	if (!c->all && s->clone &&
	    (strcmp(s->clone, c->clone->name) != 0 || s->created <= c->clone->created))
		return 0;
	if (!VEC_ROOM(h->list, h->n, c->cap))
		return err_nomem(err);
	r = history_entry(s, &h->list[h->n], err);
	if (r < 0)
		return r;
	h->n++;
	return r;
}

static int newest_first(const void *a, const void *b)
{
	const struct engine_snapshot *x = a, *y = b;

	return (x->created < y->created) - (x->created > y->created);
}

static int load_snapshots(struct store *s, struct collect *c, struct engine_history *ret,
			  struct err *err)
{
	int r = unborn_load(s, &c->unborn, err);

	if (r < 0)
		return r;
	r = snapshot_each(s, on_snapshot, c, err);
	if (r < 0)
		return r;
	VEC_SORT(c->history.list, c->history.n, newest_first);
	*ret = TAKE_STRUCT(c->history);
	return 0;
}

int history_load(struct store *s, const struct catalog_id *project, const struct clone *clone,
		 struct engine_history *ret, struct err *err)
{
	CLEANUP(collect_done) struct collect c = { .project = project, .clone = clone };

	return load_snapshots(s, &c, ret, err);
}

struct newest {
	const struct catalog_id *project;
	struct catalog_id id;
	int64_t created;
	bool found;
	struct unborn unborn;
};

static void newest_done(struct newest *n)
{
	unborn_done(&n->unborn);
}

static int on_newer(const struct snapshot *s, void *ctx, struct err *err)
{
	struct newest *n = ctx;

	if (!catalog_id_same(&s->project, n->project) || s->clone || s->part ||
	    (n->found && s->created <= n->created) || unborn_has(&n->unborn, &s->id))
		return 0;
	n->found = true;
	n->id = s->id;
	n->created = s->created;
	return 0;
}

int history_newest(struct store *s, const struct catalog_id *project, struct snapshot *ret,
		   struct err *err)
{
	CLEANUP(newest_done) struct newest n = { .project = project };
	int r = unborn_load(s, &n.unborn, err);

	if (r < 0)
		return r;
	r = snapshot_each(s, on_newer, &n, err);
	if (r < 0)
		return r;
	return n.found ? engine_as_damage(err, snapshot_get(s, &n.id, ret, err)) : -ENOENT;
}

int history_last(struct store *s, const struct engine_history *h, const struct clone *clone,
		 const char *part, struct snapshot *ret, struct err *err)
{
	size_t i = 0;
	int r = 0;

	while (i < h->n && is_partial(&h->list[i]) && !part_same(h->list[i].part, part))
		i++;
	if (i < h->n)
		r = snapshot_find(s, h->list[i].id, ret, err);
	else if (clone)
		r = snapshot_get(s, clone_start(clone), ret, err);
	return engine_as_damage(err, r);
}

int history_has_clone(struct store *store, const struct snapshot *s, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	int r;

	if (!s->clone)
		return 0;
	r = clone_get(store, s->clone, &clone, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return catalog_id_same(&clone.project, &s->project) && s->created > clone.created;
}

bool history_holds(const struct snapshot *s, const struct object_id *root,
		   const struct catalog_id *base)
{
	return !catalog_id_is_zero(&s->id) && object_id_equal(&s->root, root) &&
	       (catalog_id_is_zero(&s->base) || catalog_id_same(&s->base, base));
}

/* Add the tags and the project's path, and move it all to *ret. */
static int hand_over(struct store *s, struct project *project, struct engine_history *h,
		     struct engine_history *ret, struct err *err)
{
	int r = tag_fill(s, h->list, h->n, err);

	if (r < 0)
		return r;
	h->project = TAKE_PTR(project->path);
	*ret = *h;
	*h = (struct engine_history){ 0 };
	return 0;
}

/* A clone is found from everywhere, as by all that takes its name. */
static int find_clone(struct engine *e, const char *name, struct store **ret_store,
		      struct clone *ret, struct project *ret_project, struct err *err)
{
	int r = engine_store(e, STORE_READ, ret_store, err);

	if (r >= 0)
		r = clone_get(*ret_store, name, ret, err);
	if (r >= 0)
		return engine_as_damage(err,
					project_get(*ret_store, &ret->project, ret_project, err));
	if (r != -ENOENT)
		return r;
	r = engine_project(e, ret_store, ret_project, err);
	return r < 0 ? r : err_set(err, -ENOENT, "there is no clone '%s'", name);
}

int engine_log(struct engine *e, const char *clone, struct engine_history *ret, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(clone_done) struct clone c = { 0 };
	struct store *s;
	int r = clone ? find_clone(e, clone, &s, &c, &project, err)
		      : engine_project(e, &s, &project, err);

	if (r < 0)
		return r;
	r = history_load(s, &project.id, clone ? &c : NULL, &h, err);
	return r < 0 ? r : hand_over(s, &project, &h, ret, err);
}

int engine_log_all(struct engine *e, struct engine_history *ret, struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(collect_done) struct collect c = { .project = &project.id, .all = true };
	struct store *s;
	int r = engine_project(e, &s, &project, err);

	if (r < 0)
		return r;
	r = load_snapshots(s, &c, &h, err);
	return r < 0 ? r : hand_over(s, &project, &h, ret, err);
}

/* --- by label --------------------------------------------------------------------------- */

struct oldest {
	const char *label;
	struct catalog_id project;
	int64_t created;
};

static int match_label(const struct snapshot *s, void *ctx, struct err *err)
{
	struct oldest *o = ctx;

	if (s->clone || !history_is_automatic(s) || !meta_matches(s->meta, o->label) ||
	    s->created >= o->created)
		return 0;
	o->project = s->project;
	o->created = s->created;
	return 0;
}

char *engine_project_labelled(struct engine *e, const char *label)
{
	CLEANUP(project_done) struct project project = { 0 };
	struct oldest o = { .label = label, .created = INT64_MAX };
	struct store *s;

	if (!engine_has_store(e) || engine_store(e, STORE_READ, &s, NULL) < 0 ||
	    snapshot_each(s, match_label, &o, NULL) < 0 || o.created == INT64_MAX ||
	    project_get(s, &o.project, &project, NULL) < 0)
		return NULL;
	return TAKE_PTR(project.path);
}
