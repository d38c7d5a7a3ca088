#include "engine/act/retain-i.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/find/unborn-i.h"

struct candidate {
	struct catalog_id id, project;
	int64_t created;
	char *part; /* owned; of the project itself: the directory that it has alone; NULL: all */
	bool own;   /* of the project itself, not of a clone */
	bool automatic;
};

struct choosing {
	struct store *store;
	struct candidate *list; /* owned */
	size_t n, cap;
	struct unborn unborn;
};

static void choosing_done(struct choosing *c)
{
	VEC_FREE(one, c->list, c->n, free(one->part));
	unborn_done(&c->unborn);
}

static int on_snapshot(const struct snapshot *s, void *ctx, struct err *err)
{
	struct choosing *c = ctx;
	struct candidate *one;
	int r = history_has_clone(c->store, s, err);

	if (r != 0 || unborn_has(&c->unborn, &s->id))
		return r < 0 ? r : 0;
	if (!VEC_ROOM(c->list, c->n, c->cap))
		return err_nomem(err);
	one = &c->list[c->n];
	*one = (struct candidate){
		.id = s->id,
		.project = s->project,
		.created = s->created,
		.part = !s->clone && s->part ? strdup(s->part) : NULL,
		.own = !s->clone,
		.automatic = history_is_automatic(s),
	};
	if (!s->clone && s->part && !one->part)
		return err_nomem(err);
	c->n++;
	return 0;
}

/* Snapshots of a part say nothing of the rest, so they never stand for those of the whole project. */
static int compare_subjects(const struct candidate *x, const struct candidate *y)
{
	const int c = memcmp(x->project.b, y->project.b, sizeof(x->project.b));

	return c != 0 ? c : strcmp(x->part ? x->part : "", y->part ? y->part : "");
}

/* By project and part, the newest first. */
static int by_subject_and_age(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const int c = compare_subjects(x, y);

	return c != 0 ? c : (x->created < y->created) - (x->created > y->created);
}

/* Snapshots from this time on stay; INT64_MAX: the age keeps none. */
static int64_t since(const struct engine_gc_options *o)
{
	const int64_t now = engine_now();

	if (o->keep_within_ms == 0)
		return INT64_MAX;
	return o->keep_within_ms > (uint64_t)now / 1000000
		   ? INT64_MIN
		   : now - (int64_t)o->keep_within_ms * 1000000;
}

static int add(struct choosing *c, const struct candidate *one, struct forget *f, struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot s = { 0 };
	int r = engine_as_damage(err, snapshot_get(c->store, &one->id, &s, err));

	return r < 0 ? r : forget_add(f, &s, err);
}

/* How many of a kind were seen of a project or a part of it, and whether its own newest was among them. */
struct seen {
	uint64_t n;
	bool own;
};

/* Each kind is counted by itself, so that automatic snapshots do not displace a user's. */
static int choose(struct choosing *c, const struct engine_gc_options *o, struct forget *f,
		  struct err *err)
{
	const int64_t young = since(o);
	struct seen seen[2] = { 0 }; /* a user's, and automatic ones */
	size_t first = 0;
	int r = 0;

	VEC_SORT(c->list, c->n, by_subject_and_age);
	for (size_t i = 0; i < c->n && r >= 0; i++) {
		const struct candidate *one = &c->list[i];

		struct seen *of = &seen[one->automatic];

		if (compare_subjects(one, &c->list[first]) != 0) {
			first = i;
			seen[0] = seen[1] = (struct seen){ 0 };
		}
		/* An automatic one newer than all of the user's is where an undo leads. */
		if (of->n++ < o->keep_last || one->created >= young ||
		    (one->own && !of->own && !seen[0].own)) {
			of->own |= one->own;
			continue;
		}
		r = add(c, one, f, err);
	}
	return r;
}

/* List what goes, for the answer. */
static int describe(struct choosing *c, const struct forget *f, struct engine_history *ret,
		    struct err *err)
{
	CLEANUP(engine_history_done) struct engine_history h = { 0 };
	int r;

	h.list = calloc(f->n > 0 ? f->n : 1, sizeof(*h.list));
	if (!h.list)
		return err_nomem(err);
	for (size_t i = 0; i < c->n; i++) {
		CLEANUP(snapshot_done) struct snapshot s = { 0 };

		if (!forget_goes(f, &c->list[i].id))
			continue;
		r = engine_as_damage(err, snapshot_get(c->store, &c->list[i].id, &s, err));
		if (r < 0)
			return r;
		r = history_entry(&s, &h.list[h.n], err);
		if (r < 0)
			return r;
		h.n++;
	}
	*ret = TAKE_STRUCT(h);
	return 0;
}

int retain_choose(struct store *s, const struct engine_gc_options *options, struct forget *f,
		  struct engine_history *ret, struct err *err)
{
	CLEANUP(choosing_done) struct choosing c = { .store = s };
	int r;

	if (options->keep_last == 0 && options->keep_within_ms == 0)
		return 0;
	r = unborn_load(s, &c.unborn, err);
	if (r < 0)
		return r;
	r = snapshot_each(s, on_snapshot, &c, err);
	if (r < 0)
		return r;
	r = choose(&c, options, f, err);
	if (r < 0)
		return r;
	r = forget_settle(f, s, NULL, err);
	return r < 0 ? r : describe(&c, f, ret, err);
}
