/*
 * Both roots are followed level by level. A subtree that both sides name, and neither has entered,
 * is skipped. If one side has entered it already, the other enters it too, so that its content
 * becomes common as well.
 */
#include "cowfs/store/unshared.h"

#include <errno.h>

#include "base/map.h"
#include "cowfs/store/behind.h"
#include "cowfs/store/store-i.h"

enum side { SIDE_OURS, SIDE_OTHER, SIDES };

struct seen {
	struct object_ref what; /* its key */
	bool by[SIDES];
	bool opened[SIDES];
};

struct walk {
	struct store *store;
	struct map seen;                    /* struct seen, owned */
	enum side side;                     /* being followed */
	struct buf now[SIDES], next[SIDES]; /* struct seen *: named by that side */
	struct buf node;
};

static void walk_done(struct walk *w)
{
	size_t pos = 0;
	void *one;

	while ((one = map_next(&w->seen, &pos)))
		free(one);
	map_done(&w->seen);
	for (int i = 0; i < SIDES; i++) {
		buf_done(&w->now[i]);
		buf_done(&w->next[i]);
	}
	buf_done(&w->node);
}

static int find_or_add(struct walk *w, const struct object_ref *what, struct seen **ret)
{
	struct seen *s = map_get(&w->seen, what);
	void *unused;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->what = *what;
		if (map_add(&w->seen, &s->what, s, &unused) < 0) {
			free(s);
			return -ENOMEM;
		}
	}
	*ret = s;
	return 0;
}

static int on_named(enum object_kind kind, const struct object_id *id, void *ctx, struct err *err)
{
	const struct object_ref what = { .kind = kind, .id = *id };
	struct walk *w = ctx;
	struct seen *s;

	if (find_or_add(w, &what, &s) < 0)
		return err_nomem(err);
	if (s->by[w->side])
		return 0;
	s->by[w->side] = true;
	return buf_append(&w->next[w->side], &s, sizeof(s)) < 0 ? err_nomem(err) : 0;
}

static int open_one(struct walk *w, struct seen *s, struct err *err)
{
	const enum side there = w->side == SIDE_OURS ? SIDE_OTHER : SIDE_OURS;
	int r;

	if (s->by[there] && !s->opened[there])
		return 0;
	s->opened[w->side] = true;
	if (s->what.kind == OBJECT_CHUNK || s->what.kind == OBJECT_XATTRS)
		return 0;
	r = store_require(w->store, s->what.kind, &s->what.id, &w->node, err);
	return r < 0 ? r : behind_each(s->what.kind, w->node.data, w->node.len, on_named, w, err);
}

/* One level of both sides; 1 if there is another. */
static int step(struct walk *w, struct err *err)
{
	int r = 0;

	for (int i = 0; i < SIDES; i++) {
		buf_swap(&w->now[i], &w->next[i]);
		buf_reset(&w->next[i]);
	}
	for (int i = 0; i < SIDES; i++) {
		w->side = (enum side)i;
		for (size_t k = 0; k < w->now[i].len / sizeof(struct seen *) && r >= 0; k++)
			r = open_one(w, ((struct seen **)w->now[i].data)[k], err);
	}
	return r < 0 ? r : w->next[SIDE_OURS].len > 0 || w->next[SIDE_OTHER].len > 0;
}

static int sum_up(struct walk *w, struct unshared *ret, struct err *err)
{
	CLEANUP(reader_give_p) struct reader *rd = NULL;
	struct unshared sum = { 0 };
	const struct seen *s;
	uint64_t size;
	size_t pos = 0;
	int r = reader_take(w->store, &rd, err);

	while (r >= 0 && (s = map_next(&w->seen, &pos))) {
		if (s->by[SIDE_OTHER])
			continue;
		r = reader_packed_size(rd, s->what.kind, &s->what.id, &size, err);
		if (r == 0)
			r = object_damaged(err, s->what.kind, &s->what.id, "it is missing");
		if (r < 0)
			break;
		sum.objects++;
		sum.bytes += size;
	}
	if (r < 0)
		return r;
	*ret = sum;
	return 0;
}

int unshared_count(struct store *s, const struct object_id *root, const struct object_id *other,
		   struct unshared *ret, struct err *err)
{
	CLEANUP(walk_done) struct walk w = { .store = s,
					     .seen = MAP_INIT(object_ref_hash, object_ref_equal) };
	const struct object_id *const roots[SIDES] = { root, other };
	int r = 0;

	for (int i = 0; i < SIDES && r >= 0; i++) {
		w.side = (enum side)i;
		r = on_named(OBJECT_TREE, roots[i], &w, err);
	}
	while (r >= 0 && (r = step(&w, err)) > 0)
		;
	return r < 0 ? r : sum_up(&w, ret, err);
}
