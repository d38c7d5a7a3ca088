#include "engine/api/overlaps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "engine/act/acts-i.h"
#include "engine/act/hold-i.h"
#include "engine/find/conflicts-i.h"
#include "snapshot/diff/changes.h"

/* A clone as it is now. */
struct blip {
	char *name;           /* owned */
	struct snapshot base; /* id zero: the clone could not be read */
	struct object_id root;
	struct map paths; /* that it changed: each is its own key, and owned */
};

struct sweep {
	struct task *task;
	struct catalog_id project;
	struct blip *list; /* owned */
	size_t n, cap;
	struct engine_overlaps result;
};

static void sweep_done(struct sweep *s)
{
	char *path;

	for (size_t i = 0; i < s->n; i++) {
		for (size_t pos = 0; (path = map_next(&s->list[i].paths, &pos));)
			free(path);
		map_done(&s->list[i].paths);
		snapshot_done(&s->list[i].base);
		free(s->list[i].name);
	}
	free(s->list);
	engine_overlaps_done(&s->result);
}

/* --- looking at each -------------------------------------------------------------------- */

/* The walk holds a connection to the store, so it only collects names. */
static int collect(const struct clone *c, void *ctx, struct err *err)
{
	struct sweep *s = ctx;

	if (!catalog_id_same(&c->project, &s->project))
		return 0;
	if (!VEC_ROOM(s->list, s->n, s->cap))
		return err_nomem(err);
	s->list[s->n] = (struct blip){
		.name = strdup(c->name),
		.paths = MAP_INIT(map_hash_str, map_equal_str),
	};
	return s->list[s->n++].name ? 0 : err_nomem(err);
}

static int add_path(const char *path, char status, void *ctx, struct err *err)
{
	struct blip *b = ctx;
	AUTO_FREE char *own = NULL;
	void *existing;
	size_t len;
	int r;

	/* merge_overlap() does not compare longer paths either. */
	if (strlen(path) >= PATH_MAX || conflicts_is_git(path, &len))
		return 0;
	own = strdup(path);
	r = own ? map_add(&b->paths, own, own, &existing) : -ENOMEM;
	if (r == 0)
		own = NULL;
	return r < 0 ? err_nomem(err) : 0;
}

static int load_blip(struct sweep *s, struct blip *b, struct err *err)
{
	CLEANUP(clone_done) struct clone clone = { 0 };
	struct store *store = s->task->engine.store;
	char hex[CATALOG_HEX_SIZE];
	struct held held, base;
	int r = hold_clone(s->task, b->name, &held, err);

	if (r < 0)
		return r;
	r = clone_find(store, b->name, &clone, err);
	if (r < 0)
		return r;
	r = engine_as_damage(err, snapshot_get(store, &clone.base, &b->base, err));
	if (r < 0)
		return r;
	r = hold_state(s->task, catalog_id_hex(&clone.base, hex), NULL, &base, err);
	if (r < 0)
		return r;
	b->root = held.root;
	return changes_each(store, &b->base.root, &b->root, add_path, b, err);
}

/* A clone that was removed meanwhile is skipped silently, any other failure with a warning. */
static void look_at_all(struct sweep *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct err err = { 0 };
		int r = load_blip(s, &s->list[i], &err);

		if (r >= 0)
			continue;
		if (r != -ENOENT)
			engine_warn(&s->task->engine, "clone '%s': %s, continuing", s->list[i].name,
				    err.msg);
		s->list[i].base.id = (struct catalog_id){ 0 };
	}
}

/* --- two of them ------------------------------------------------------------------------ */

struct pair {
	const struct blip *a, *b;
	struct engine_meeting meeting;
	size_t met_cap; /* of its list */
};

static void pair_done(struct pair *p)
{
	engine_meeting_done(&p->meeting);
}

static int on_overlap(const char *path, enum merge_overlap overlap, void *ctx, struct err *err)
{
	struct pair *p = ctx;
	struct engine_meeting *m = &p->meeting;

	/* A path may differ from the older base because only the project changed it. */
	if (!map_get(&p->a->paths, path) || !map_get(&p->b->paths, path))
		return 0;
	m->same += overlap == MERGE_SAME;
	m->apart += overlap == MERGE_APART;
	m->overlap += overlap == MERGE_OVERLAP;
	if (m->n == ENGINE_MET_MAX)
		return 0;
	if (!VEC_ROOM(m->met, m->n, p->met_cap))
		return err_nomem(err);
	m->met[m->n] = (struct engine_met){ .path = strdup(path), .overlap = overlap };
	return m->met[m->n++].path ? 0 : err_nomem(err);
}

static bool share_a_path(const struct blip *a, const struct blip *b)
{
	const struct blip *few = a->paths.n < b->paths.n ? a : b, *many = few == a ? b : a;
	const char *path;

	for (size_t pos = 0; (path = map_next(&few->paths, &pos));)
		if (map_get(&many->paths, path))
			return true;
	return false;
}

static int add_meeting(struct sweep *s, struct pair *p, struct err *err)
{
	struct engine_overlaps *res = &s->result;

	if (!VEC_ONE_MORE(res->list, res->n))
		return err_nomem(err);
	res->list[res->n++] = TAKE_STRUCT(p->meeting);
	return 0;
}

static int compare(struct sweep *s, const struct blip *a, const struct blip *b, struct err *err)
{
	CLEANUP(pair_done) struct pair p = { .a = a, .b = b };
	const struct snapshot *base = a->base.created <= b->base.created ? &a->base : &b->base;
	int r = 0;

	if (catalog_id_is_zero(&a->base.id) || catalog_id_is_zero(&b->base.id) ||
	    !share_a_path(a, b))
		return 0;
	p.meeting.with = strdup(a->name);
	p.meeting.clone = strdup(b->name);
	p.meeting.bases_differ = !catalog_id_same(&a->base.id, &b->base.id);
	catalog_id_hex(&base->id, p.meeting.base);
	r = p.meeting.with && p.meeting.clone ? 0 : err_nomem(err);
	if (r < 0)
		return r;
	r = merge_overlap(s->task->engine.store, &base->root, &a->root, &b->root, on_overlap, &p,
			  err);
	return r >= 0 && p.meeting.n > 0 ? add_meeting(s, &p, err) : r;
}

/* --- the whole -------------------------------------------------------------------------- */

static int find_project(struct sweep *s, const char *name, struct err *err)
{
	CLEANUP(project_done) struct project project = { 0 };
	CLEANUP(clone_done) struct clone clone = { 0 };
	int r;

	if (name) {
		r = clone_find(s->task->engine.store, name, &clone, err);
		s->project = clone.project;
		return r;
	}
	r = project_around(&s->task->engine, s->task->engine.store, &project, err);
	s->project = project.id;
	return r;
}

int overlaps_find(struct task *task, const char *name, struct engine_overlaps *ret, struct err *err)
{
	CLEANUP(sweep_done) struct sweep s = { .task = task };
	AUTO_FREE char *here = name ? NULL : clone_here(&task->engine);
	int r;

	name = name ? name : here;
	r = find_project(&s, name, err);
	if (r < 0)
		return r;
	r = clone_each(task->engine.store, collect, &s, err);
	if (r < 0)
		return r;
	look_at_all(&s);
	for (size_t i = 0; i < s.n && r >= 0; i++) {
		if (name && strcmp(s.list[i].name, name) != 0)
			continue;
		for (size_t k = name ? 0 : i + 1; k < s.n && r >= 0; k++)
			if (k != i)
				r = compare(&s, &s.list[i], &s.list[k], err);
	}
	if (r < 0)
		return r;
	s.result.looked_at = s.n - (name && s.n > 0);
	*ret = TAKE_STRUCT(s.result);
	return 0;
}
