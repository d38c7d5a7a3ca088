/*
 * The tree is walked a second time, a group of chunks ahead of the walk in outbound.c and by the
 * same rules. Chunks that the other walk sent meanwhile are skipped there, though this one may have
 * read them: so the two can diverge, and meet again at the next chunk that both have.
 */
#include "remote/pack/outbound-i.h"

#include <stdlib.h>

#include "base/sha256-many.h"
#include "base/vec.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/recipe.h"
#include "cowfs/store/tree.h"
#include "remote/pack/outbound.h"

#define GROUP       128               /* chunks, */
#define GROUP_BYTES ((size_t)1 << 20) /* or so many bytes, and one chunk more */
#define MISSES_MAX  8                 /* one after the other, before a group is given up */
#define DEPTH_MAX   (OUTBOUND_DEPTH_MAX + RECIPE_LEVEL_MAX + 1)

/* A directory or a node of a large file on the way to where the walk is. */
struct step {
	struct tree_iter *it; /* owned; NULL: a node of a large file */
	struct buf bytes;     /* that node */
	struct recipe_view view;
	unsigned next; /* slot of it */
};

struct outbound_ahead {
	struct store *store;
	outbound_ahead_skip_fn skip;
	void *ctx;
	struct step *steps; /* owned */
	size_t depth, cap;
	struct outbound_ahead_chunk list[GROUP];
	size_t n, next; /* that were read, and the first that was not asked for */
	unsigned misses;
};

static void step_done(struct step *s)
{
	tree_iter_free(s->it);
	buf_done(&s->bytes);
}

void outbound_ahead_free(struct outbound_ahead *a)
{
	if (!a)
		return;
	while (a->depth > 0)
		step_done(&a->steps[--a->depth]);
	free(a->steps);
	for (size_t i = 0; i < GROUP; i++)
		buf_done(&a->list[i].bytes);
	free(a);
}

/* --- the walk ----------------------------------------------------------------------------- */

static int enter(struct outbound_ahead *a, enum object_kind kind, const struct object_id *id,
		 struct err *err)
{
	struct step s = { 0 };
	int r;

	if (a->skip(a->ctx, kind, id))
		return 0;
	if (a->depth >= DEPTH_MAX || !VEC_ROOM(a->steps, a->depth, a->cap))
		return err_nomem(err);
	if (kind == OBJECT_TREE) {
		r = tree_iter_new(a->store, id, &s.it, err);
	} else {
		r = cache_require(a->store, kind, id, &s.bytes, err);
		if (r == 0)
			r = recipe_view(s.bytes.data, s.bytes.len, &s.view, err);
	}
	if (r < 0) {
		step_done(&s);
		return r;
	}
	a->steps[a->depth++] = s;
	return 0;
}

/* The next chunk, or what else comes next.  1; 0: the step is at its end. */
static int next_below(struct step *s, enum object_kind *ret_kind, struct object_id *ret,
		      struct err *err)
{
	struct tree_entry e;
	int r;

	while (!s->it && s->next < s->view.n) {
		*ret = recipe_view_id(&s->view, s->next++);
		*ret_kind = s->view.level == 0 ? OBJECT_CHUNK : OBJECT_RECIPE;
		if (!object_id_is_zero(ret))
			return 1;
	}
	while (s->it && (r = tree_iter_next(s->it, &e, err)) != 0) {
		if (r < 0)
			return r;
		*ret = e.id;
		*ret_kind = e.form == TREE_DIR ? OBJECT_TREE : OBJECT_RECIPE;
		if (e.form == TREE_CHUNK)
			*ret_kind = OBJECT_CHUNK;
		if (e.form == TREE_DIR || e.form == TREE_CHUNK || e.form == TREE_RECIPE)
			return 1;
	}
	return 0;
}

/* 1: a chunk that is to be read.  0 at the end. */
static int next_chunk(struct outbound_ahead *a, struct object_id *ret, struct err *err)
{
	enum object_kind kind = OBJECT_CHUNK;

	while (a->depth > 0) {
		int r = next_below(&a->steps[a->depth - 1], &kind, ret, err);

		if (r == 0)
			step_done(&a->steps[--a->depth]);
		else if (r > 0 && kind != OBJECT_CHUNK)
			r = enter(a, kind, ret, err);
		else if (r > 0 && !a->skip(a->ctx, kind, ret))
			return 1;
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- groups ------------------------------------------------------------------------------- */

static void digest_group(struct outbound_ahead *a)
{
	struct sha256_job jobs[GROUP];

	for (size_t i = 0; i < a->n; i++)
		jobs[i] = (struct sha256_job){ a->list[i].bytes.data, a->list[i].bytes.len,
					       a->list[i].digest.b };
	sha256_many(jobs, a->n);
}

static void read_group(struct outbound_ahead *a)
{
	struct err ignored = { 0 };
	size_t bytes = 0;
	int r = 1;

	a->n = a->next = 0;
	a->misses = 0;
	while (r > 0 && a->n < GROUP && bytes < GROUP_BYTES) {
		struct outbound_ahead_chunk *c = &a->list[a->n];

		r = next_chunk(a, &c->id, &ignored);
		if (r > 0 && store_require(a->store, OBJECT_CHUNK, &c->id, &c->bytes, &ignored) < 0)
			r = -1;
		if (r > 0) {
			bytes += c->bytes.len;
			a->n++;
		}
	}
	/* The other walk says what is wrong. */
	while (r < 0 && a->depth > 0)
		step_done(&a->steps[--a->depth]);
	digest_group(a);
}

int outbound_ahead_new(struct store *s, const struct object_id *tree, outbound_ahead_skip_fn skip,
		       void *ctx, struct outbound_ahead **ret, struct err *err)
{
	struct outbound_ahead *a = calloc(1, sizeof(*a));
	struct err ignored = { 0 };

	if (!a)
		return err_nomem(err);
	a->store = s;
	a->skip = skip;
	a->ctx = ctx;
	IGNORE_RESULT(enter(a, OBJECT_TREE, tree, &ignored), "the other walk says what is wrong");
	*ret = a;
	return 0;
}

const struct outbound_ahead_chunk *outbound_ahead_take(struct outbound_ahead *a,
						       const struct object_id *id)
{
	if (a->next == a->n || a->misses >= MISSES_MAX)
		read_group(a);
	for (size_t i = a->next; i < a->n; i++)
		if (object_id_equal(&a->list[i].id, id)) {
			a->next = i + 1;
			a->misses = 0;
			return &a->list[i];
		}
	a->misses++;
	return NULL;
}
