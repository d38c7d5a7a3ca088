/*
 * Two differences, base to ours and base to theirs, are joined by path: changes of theirs alone are
 * applied to ours, changes of both are merged. Names that theirs left alone are never looked at,
 * and directories that neither side changed are never read.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "snapshot/merge/merge-i.h"

static void merging_done(struct merging *m)
{
	side_done(&m->ours);
	side_done(&m->theirs);
	draft_done(&m->draft);
	fresh_done(&m->fresh);
	map_done(&m->choices);
	merge_done(&m->result);
}

static int find_renames(struct merging *m, const struct object_id *base,
			const struct object_id *ours, const struct object_id *theirs,
			struct err *err)
{
	int r = side_find_renames(m->store, base, ours, &m->ours, &m->theirs, err);

	return r < 0 ? r : side_find_renames(m->store, base, theirs, &m->theirs, &m->ours, err);
}

/* Both sides as differences from base, and what was renamed in them. */
static int learn_sides(struct merging *m, const struct object_id *base,
		       const struct object_id *ours, const struct object_id *theirs,
		       struct err *err)
{
	int r;

	if (m->theirs.n == 0)
		return 0;
	r = side_collect(m->store, base, ours, NULL, NULL, &m->ours, err);
	if (r < 0 || m->options->no_renames)
		return r;
	return find_renames(m, base, ours, theirs, err);
}

int merge_trees(struct batch *b, const struct object_id *base, const struct object_id *ours,
		const struct object_id *theirs, const struct merge_options *options,
		struct merge *ret, struct err *err)
{
	CLEANUP(merging_done)
	struct merging m = {
		.batch = b,
		.store = batch_store(b),
		.options = options,
		.ours = SIDE_INIT,
		.theirs = SIDE_INIT,
		.fresh = MAP_INIT(object_ref_hash, object_ref_equal),
		.choices = MAP_INIT(map_hash_str, map_equal_str),
	};
	int r = merge_learn_choices(&m, err);

	if (r < 0)
		return r;
	r = root_get(m.store, base, &m.base, err);
	if (r < 0)
		return r;
	r = root_get(m.store, theirs, &m.theirs_root, err);
	if (r < 0)
		return r;
	r = draft_init(&m.draft, m.store, ours, options->now, err);
	if (r < 0)
		return r;
	r = side_collect(m.store, base, theirs, options->take, options->take_ctx, &m.theirs, err);
	if (r < 0)
		return r;
	/* If ours is base and all of theirs takes part, the result is theirs. */
	if (object_id_equal(base, ours) && !m.theirs.left_out) {
		ret->root = *theirs;
		return 0;
	}
	r = learn_sides(&m, base, ours, theirs, err);
	if (r < 0)
		return r;
	r = merge_join(&m, err);
	if (r < 0)
		return r;
	r = merge_fill_choices(&m, err);
	if (r < 0)
		return r;
	r = merge_write(&m, err);
	if (r < 0)
		return r;
	merge_sort_conflicts(&m.result);
	*ret = TAKE_STRUCT(m.result);
	return 0;
}

/* --- overlap ---------------------------------------------------------------------------- */

static int overlap_of(struct store *s, const struct altered *a, const struct altered *b,
		      struct err *err)
{
	static const struct merge_options counting = { 0 };
	struct buf text[VERSIONS] = { BUF_INIT, BUF_INIT, BUF_INIT }, merged = BUF_INIT;
	const struct tree_entry *const e[VERSIONS] = { &a->before, &a->after, &b->after };
	unsigned hunks = 1;
	int r = 1;

	if (!file_part(e[OURS]) || !file_part(e[THEIRS]))
		return a->after.mode == b->after.mode ? MERGE_SAME : MERGE_OVERLAP;
	if (merge_same_content(e[OURS], e[THEIRS]))
		return MERGE_SAME;
	if (!(a->what & b->what & (DIFF_CONTENT | DIFF_TYPE)) && a->before.mode != 0)
		return MERGE_APART;
	for (int v = 0; v < VERSIONS && r > 0; v++) {
		if (e[v]->mode != 0 && S_ISREG(e[v]->mode))
			r = merge_text_load(s, e[v], &text[v], err);
		else
			r = v == BASE;
	}
	if (r > 0)
		r = merge_text(text, &counting, MERGE_STOP, &merged, &hunks, err);
	for (int v = 0; v < VERSIONS; v++)
		buf_done(&text[v]);
	buf_done(&merged);
	return r < 0 ? r : hunks > 0 ? MERGE_OVERLAP : MERGE_APART;
}

struct overlapping {
	struct side a, b;
};

static void overlapping_done(struct overlapping *o)
{
	side_done(&o->a);
	side_done(&o->b);
}

static bool is_dir_on_both(const struct altered *a)
{
	return !file_part(&a->before) && !file_part(&a->after);
}

/* Paths that merge_trees() refuses cannot overlap. */
static bool can_be_named(const char *path, void *unused)
{
	return strlen(path) < PATH_MAX;
}

int merge_overlap(struct store *s, const struct object_id *base, const struct object_id *a,
		  const struct object_id *b, merge_overlap_fn fn, void *ctx, struct err *err)
{
	CLEANUP(overlapping_done) struct overlapping o = { .a = SIDE_INIT, .b = SIDE_INIT };
	int r = side_collect(s, base, a, can_be_named, NULL, &o.a, err);

	if (r < 0)
		return r;
	r = side_collect(s, base, b, can_be_named, NULL, &o.b, err);
	for (size_t i = 0; i < o.a.n && r == 0; i++) {
		const struct altered *x = &o.a.list[i], *y = side_get(&o.b, x->path);

		if (!y || !altered_counts(x) || !altered_counts(y) ||
		    (is_dir_on_both(x) && is_dir_on_both(y)))
			continue;
		r = overlap_of(s, x, y, err);
		r = r < 0 ? err_wrap(err, r, "'%s'", x->path)
			  : fn(x->path, (enum merge_overlap)r, ctx, err);
	}
	return r;
}
