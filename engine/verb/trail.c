#include "engine/verb/trail-i.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/le.h"
#include "base/vec.h"
#include "engine/find/unborn-i.h"

static uint64_t hash_id(const void *key)
{
	const struct catalog_id *id = key;

	return le64_load(id->b) * 0x9e3779b97f4a7c15u;
}

static bool equal_id(const void *a, const void *b)
{
	return catalog_id_same(a, b);
}

static uint64_t hash_root(const void *key)
{
	const struct object_id *id = key;

	return le64_load(id->b) * 0x9e3779b97f4a7c15u;
}

static bool equal_root(const void *a, const void *b)
{
	return object_id_equal(a, b);
}

static bool is_root(const struct object_id *root, const void *ctx)
{
	return map_get(ctx, root) != NULL;
}

static void keep_touched(struct trail *t)
{
	CLEANUP(map_done) struct map roots = MAP_INIT(hash_root, equal_root);
	void *twin;

	if (!touched_has_news(&t->touched))
		return;
	for (size_t i = 0; i < t->n; i++)
		if (map_add(&roots, &t->list[i].root, &t->list[i], &twin) < 0)
			return;
	touched_save(&t->touched, is_root, &roots);
}

void trail_done(struct trail *t)
{
	keep_touched(t);
	touched_done(&t->touched);
	touched_path_done(&t->asked);
	free(t->asked_path);
	VEC_FREE(it, t->list, t->n, free(it->clone));
	for (size_t i = 0; i < t->n_acts; i++) {
		free(t->acts[i].clone);
		free(t->acts[i].who);
	}
	free(t->seen.path);
	free(t->acts);
	free(t->by_clone);
	free(t->acts_by_before);
	free(t->acts_by_after);
	map_done(&t->by_id);
	cache_free(t->cache);
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
	/* A part of the project would seem to remove all the rest. */
	if (!s->clone && s->part)
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

/* The project itself comes first. */
static int compare_clones(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

/* The list has the newest first. */
static int by_clone(const void *a, const void *b)
{
	const struct trail_snapshot *x = *(const struct trail_snapshot *const *)a;
	const struct trail_snapshot *y = *(const struct trail_snapshot *const *)b;
	const int c = compare_clones(x->clone, y->clone);

	return c != 0 ? c : (x > y) - (x < y);
}

/* Into the tables, which point into the list. */
static int enter(struct trail *t, struct err *err)
{
	void *twin;

	VEC_SORT(t->list, t->n, newest_first);
	free(t->by_clone);
	t->by_clone = calloc(t->n + 1, sizeof(*t->by_clone));
	if (!t->by_clone)
		return err_nomem(err);
	for (size_t i = 0; i < t->n; i++)
		t->by_clone[i] = &t->list[i];
	VEC_SORT(t->by_clone, t->n, by_clone);
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

static int by_before(const void *a, const void *b)
{
	const struct trail_act *x = *(const struct trail_act *const *)a;
	const struct trail_act *y = *(const struct trail_act *const *)b;
	const int c = memcmp(x->before.b, y->before.b, sizeof(x->before.b));

	return c != 0 ? c : (x->created > y->created) - (x->created < y->created);
}

static int by_after(const void *a, const void *b)
{
	const struct trail_act *x = *(const struct trail_act *const *)a;
	const struct trail_act *y = *(const struct trail_act *const *)b;
	const int c = memcmp(x->after.b, y->after.b, sizeof(x->after.b));

	return c != 0 ? c : (x > y) - (x < y);
}

static int enter_acts(struct trail *t, struct err *err)
{
	t->acts_by_before = calloc(t->n_acts + 1, sizeof(*t->acts_by_before));
	t->acts_by_after = calloc(t->n_acts + 1, sizeof(*t->acts_by_after));
	if (!t->acts_by_before || !t->acts_by_after)
		return err_nomem(err);
	for (size_t i = 0; i < t->n_acts; i++)
		t->acts_by_before[i] = t->acts_by_after[i] = &t->acts[i];
	if (t->n_acts == 0)
		return 0;
	qsort(t->acts_by_before, t->n_acts, sizeof(*t->acts_by_before), by_before);
	qsort(t->acts_by_after, t->n_acts, sizeof(*t->acts_by_after), by_after);
	return 0;
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
	r = receipt_each(t->store, on_receipt, t, err);
	return r < 0 ? r : enter_acts(t, err);
}

int trail_open(struct engine *e, struct trail *ret, struct err *err)
{
	static const struct cache_limits limits = { .chunk_bytes = 1 << 20, .meta_bytes = 8 << 20 };
	CLEANUP(trail_done) struct trail t = { .by_id = MAP_INIT(hash_id, equal_id) };
	int r = engine_settle(e, NULL, NULL, err);

	r = r < 0 ? r : engine_project(e, &t.store, &t.project, err);
	if (r < 0)
		return r;
	r = cache_new(t.store, &limits, &t.cache, err);
	if (r < 0)
		return r;
	cache_share(t.cache);
	r = touched_open(t.store, &t.project.id, &t.touched, err);
	if (r < 0)
		return r;
	r = load(&t, err);
	if (r < 0)
		return r;
	*ret = TAKE_STRUCT(t);
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
	size_t low = 0, high = t->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const struct trail_snapshot *s = t->by_clone[mid];
		const int c = compare_clones(s->clone, clone);

		if (c < 0 || (c == 0 && s->created > when))
			low = mid + 1;
		else
			high = mid;
	}
	if (low == t->n || compare_clones(t->by_clone[low]->clone, clone) != 0)
		return TRAIL_NONE;
	return (size_t)(t->by_clone[low] - t->list);
}

/* The first in a sorted list of acts whose `before` or `after` is not below `id`. */
static size_t find_act(const struct trail *t, const struct trail_act *const *list, size_t field,
		       const struct catalog_id *id)
{
	size_t low = 0, high = t->n_acts;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (memcmp((const char *)list[mid] + field, id->b, sizeof(id->b)) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* A rollback leads to an existing snapshot, unless it was one of some paths: that is no result of it. */
const struct trail_act *trail_act_of(const struct trail *t, size_t at)
{
	const struct trail_snapshot *s = &t->list[at];
	size_t i = find_act(t, t->acts_by_after, offsetof(struct trail_act, after), &s->id);

	for (; i < t->n_acts && catalog_id_same(&t->acts_by_after[i]->after, &s->id); i++)
		if (t->acts_by_after[i]->kind == RECEIPT_PROMOTION ||
		    catalog_id_same(&t->acts_by_after[i]->before, &s->parent))
			return t->acts_by_after[i];
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
	size_t i = find_act(t, t->acts_by_before, offsetof(struct trail_act, before), &s->parent);

	for (; i < t->n_acts && !s->clone; i++) {
		const struct trail_act *a = t->acts_by_before[i];

		if (!catalog_id_same(&a->before, &s->parent) || a->created >= s->created)
			break;
		if (a->kind != RECEIPT_PROMOTION)
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
