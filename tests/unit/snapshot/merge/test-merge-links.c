/*
 * Random changes of trees with few files that have many names, merged in every way.  What comes of
 * it says of each file how many names it has, and under which number; where nothing conflicts it
 * has every edit, and what one side left alone is what the other made of it.  A directory that it
 * is applied to shows just that, and undone it is what it was.
 *
 * SNAP_TEST_ROUNDS says how many; a seed that fails is printed, and SNAP_TEST_SEED begins with it.
 */
#include "snapshot/merge/merge.h"

#include <stdio.h>

#include "tests/lib/grove.h"
#include "tests/unit/snapshot/merge/sights-fixture.h"
#include "tests/unit/snapshot/merge/world-fixture.h"

#define AT_ONCE 50
#define SHOWN   3

static const struct merge_options ways[] = {
	{ .on_conflict = MERGE_STOP, .now = 1 },
	{ .on_conflict = MERGE_OURS, .now = 1 },
	{ .on_conflict = MERGE_THEIRS, .now = 1 },
	{ .on_conflict = MERGE_MARKERS, .now = 1 },
	{ .on_conflict = MERGE_STOP, .now = 1, .no_renames = true },
	{ .on_conflict = MERGE_THEIRS, .now = 1, .no_renames = true },
};

struct triple {
	uint64_t seed;
	struct object_id base, ours, theirs;
	struct object_id merged[ARRAY_LEN(ways)];
	size_t n_conflicts[ARRAY_LEN(ways)];
};

static unsigned failures;

static uint64_t rounds(uint64_t usual)
{
	const char *wanted = getenv("SNAP_TEST_ROUNDS");

	if (wanted)
		return strtoull(wanted, NULL, 10);
	return getenv("SNAP_TESTS_LONG") ? 20 * usual : usual;
}

/* The same ones, unless somebody looks for others. */
static uint64_t first_seed(void)
{
	return getenv("SNAP_TEST_SEED") || getenv("SNAP_TESTS_LONG") ? test_seed() : 1;
}

static unsigned long n_chosen, n_by_wish;

static void show(struct store *s, const char *what, const struct object_id *root)
{
	CLEANUP(sights_done) struct sights seen;

	sights_of(s, root, &seen);
	printf("# %s:\n", what);
	for (size_t i = 0; i < seen.n; i++) {
		const struct sight *a = &seen.list[i];

		printf("#   %s%s mode %o ino %" PRIx64 " size %" PRIu64 " @%" PRId64 "%s x%u\n",
		       a->path, a->e.form == TREE_DIR ? "/" : "", a->e.mode, a->e.ino, a->e.size,
		       a->e.mtime_s, a->link ? " link" : "", a->e.nlink);
	}
}

static void complain(struct store *s, const struct triple *t, size_t way, const char *path,
		     const char *why)
{
	if (failures++ >= SHOWN)
		return;
	printf("# seed %" PRIu64 ", way %zu: '%s' %s\n", t->seed, way, path, why);
	show(s, "base", &t->base);
	show(s, "ours", &t->ours);
	show(s, "theirs", &t->theirs);
	show(s, "merged", &t->merged[way]);
}

/* --- in the store ------------------------------------------------------------------------- */

static struct object_id put_world(struct batch *b, const struct world *w)
{
	struct leaf list[WORLD_LEAVES];

	world_leaves(w, list);
	return leaf_root(b, list);
}

static void make_triple(struct batch *b, uint64_t seed, struct triple *t)
{
	struct test_rng rng = { seed };
	const struct world base = world_new(&rng);
	const struct world ours = world_changed(&base, &rng, false);
	const struct world theirs = world_changed(&base, &rng, world_below(&rng, 2));

	*t = (struct triple){
		.seed = seed,
		.base = put_world(b, &base),
		.ours = put_world(b, &ours),
		.theirs = put_world(b, &theirs),
	};
}

static void merge_triple(struct batch *b, struct triple *t, size_t way)
{
	CLEANUP(merge_done) struct merge m = { 0 };
	struct err err = { 0 };

	CHECK_OK(merge_trees(b, &t->base, &t->ours, &t->theirs, &ways[way], &m, &err), &err);
	t->merged[way] = m.root;
	t->n_conflicts[way] = m.n_conflicts;
}

/* --- laws --------------------------------------------------------------------------------- */

/* What all three have, and what became of them. */
struct views {
	struct sights base, ours, theirs, merged;
};

static void views_done(struct views *v)
{
	sights_done(&v->base);
	sights_done(&v->ours);
	sights_done(&v->theirs);
	sights_done(&v->merged);
}

static bool same_file(const struct sight *a, const struct sight *b)
{
	return a->e.mode == b->e.mode && sight_same_content(a, b);
}

/* Has a file of one side another name at which the other side changed something? */
static bool is_changed_elsewhere(const struct sights *base, const struct sights *side,
				 const struct sights *other, const struct sight *a)
{
	for (size_t i = 0; i < side->n; i++) {
		const char *path = side->list[i].path;
		const struct sight *b = sights_get(base, path), *x = sights_get(other, path);

		if (&side->list[i] != a && sights_are_one(side, a, &side->list[i]) &&
		    !(b && x && same_file(b, x)))
			return true;
	}
	return false;
}

/* Nobody's edit is lost without a word. */
static const char *lost(const struct views *v, const char *path)
{
	const struct sight *b = sights_get(&v->base, path), *o = sights_get(&v->ours, path);
	const struct sight *t = sights_get(&v->theirs, path), *m = sights_get(&v->merged, path);

	if (!b || !o || !t || !S_ISREG(b->e.mode) || !S_ISREG(o->e.mode) || !S_ISREG(t->e.mode))
		return NULL;
	if (!m)
		return "is lost";
	if (sight_same_content(b, o) || sight_same_content(o, t) ||
	    is_changed_elsewhere(&v->base, &v->ours, &v->theirs, o))
		return NULL;
	if (sight_same_content(b, t))
		return sight_same_content(m, o) ? NULL : "has lost what ours made of it";
	/* Of the others one side may have taken back what the other made of it, too. */
	if (b->e.size != strlen(world_texts[1]))
		return NULL;
	return sight_same_content(m, o) || sight_same_content(m, t) ? "has lost an edit" : NULL;
}

/* Do two trees have the same file at a path, under the same names? */
static bool is_same_at(const struct sights *a, const struct sights *b, const char *path)
{
	const struct sight *x = sights_get(a, path), *y = sights_get(b, path);
	size_t n = 0;

	if (!x || !y)
		return !x && !y;
	if (!same_file(x, y))
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct sight *z = sights_get(b, a->list[i].path);
		const bool one = sights_are_one(a, x, &a->list[i]);

		if (one != (z && sights_are_one(b, y, z)))
			return false;
		n += one;
	}
	return n == sights_names(b, (size_t)(y - b->list));
}

/* If one side left alone all that is now this file, it is what the other made of it. */
static const char *meddled(const struct views *v, const struct sights *side,
			   const struct sights *other, const char *path)
{
	const struct sight *x = sights_get(side, path), *m = sights_get(&v->merged, path);

	if ((x && x->e.form == TREE_DIR) || (m && m->e.form == TREE_DIR) ||
	    !is_same_at(&v->base, other, path))
		return NULL;
	for (size_t i = 0; i < side->n; i++)
		if (sights_are_one(side, x, &side->list[i]) &&
		    !is_same_at(&v->base, other, side->list[i].path))
			return NULL;
	/* Under other names it may be the same file still. */
	for (size_t i = 0; i < other->n && x; i++)
		if (other->list[i].e.ino == x->e.ino &&
		    !is_same_at(&v->base, other, other->list[i].path))
			return NULL;
	return is_same_at(side, &v->merged, path) ? NULL : "is not what one side alone made of it";
}

static const char *flaw_of(const struct views *v, const char *path)
{
	const char *why = lost(v, path);

	if (!why)
		why = meddled(v, &v->ours, &v->theirs, path);
	return why ? why : meddled(v, &v->theirs, &v->ours, path);
}

static void check_laws(struct store *s, const struct triple *t, size_t way)
{
	CLEANUP(views_done) struct views v = { 0 };

	sights_of(s, &t->base, &v.base);
	sights_of(s, &t->ours, &v.ours);
	sights_of(s, &t->theirs, &v.theirs);
	sights_of(s, &t->merged[way], &v.merged);
	for (size_t i = 0; i < WORLD_PATHS && t->n_conflicts[way] == 0; i++) {
		const char *why = flaw_of(&v, world_paths[i]);

		if (why)
			complain(s, t, way, world_paths[i], why);
	}
}

/* Has a side another file at a name, with nothing to tell it from the one in base?  A merge sees none. */
static bool hides_a_number(struct store *s, const struct triple *t, const struct object_id *root)
{
	CLEANUP(sights_done) struct sights base;
	CLEANUP(sights_done) struct sights side;
	bool hides = false;

	sights_of(s, &t->base, &base);
	sights_of(s, root, &side);
	for (size_t i = 0; i < side.n; i++) {
		const struct sight *a = &side.list[i], *b = sights_get(&base, a->path);

		hides |=
		    b && same_file(a, b) && a->e.mtime_s == b->e.mtime_s && a->e.ino != b->e.ino;
	}
	return hides;
}

static void check_merged(struct store *s, const struct triple *t, size_t way)
{
	CLEANUP(sights_done) struct sights seen;
	size_t links = 0;

	sights_of(s, &t->merged[way], &seen);
	for (size_t i = 0; i < seen.n; i++) {
		const char *flaw = sights_flaw(&seen, i);

		links += seen.list[i].link && sights_first(&seen, i) == i;
		if (!flaw && sights_share_number(&seen, i) && !hides_a_number(s, t, &t->ours) &&
		    !hides_a_number(s, t, &t->theirs))
			flaw = "has the number of another file";
		if (flaw)
			complain(s, t, way, seen.list[i].path, flaw);
	}
	if (links != seen.n_links)
		complain(s, t, way, "", "has files among its links that have no name");
	if (ways[way].no_renames)
		check_laws(s, t, way);
}

TEST(a_merged_tree_is_sound_and_no_edit_is_lost)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("store"), STORE_CREATE);
	static struct triple t[AT_ONCE];
	const uint64_t seed = first_seed(), n = rounds(1000);

	failures = 0;
	for (uint64_t i = 0; i < n; i += AT_ONCE) {
		CLEANUP(batch_end_p) struct batch *made = stock_begin(s);
		CLEANUP(batch_end_p) struct batch *merged = NULL;

		for (size_t k = 0; k < AT_ONCE; k++)
			make_triple(made, seed + i + k, &t[k]);
		stock_commit(made);
		merged = stock_begin(s);
		for (size_t k = 0; k < AT_ONCE; k++)
			for (size_t way = 0; way < ARRAY_LEN(ways); way++)
				merge_triple(merged, &t[k], way);
		stock_commit(merged);
		for (size_t k = 0; k < AT_ONCE; k++)
			for (size_t way = 0; way < ARRAY_LEN(ways); way++)
				check_merged(s, &t[k], way);
	}
	CHECK_EQ(failures, 0);
}

/* --- choices ------------------------------------------------------------------------------ */

/* A wish for all of theirs can make a name conflict that nobody fights for without it. */
static bool tells_no_more(const struct merge *whole, const struct merge *stop)
{
	bool found = true;

	for (size_t i = 0; i < whole->n_conflicts && found; i++) {
		found = false;
		for (size_t k = 0; k < stop->n_conflicts; k++)
			found |= strcmp(whole->conflicts[i].path, stop->conflicts[k].path) == 0;
	}
	return found;
}

static void check_chosen(struct store *s, struct triple *t, struct batch *b,
			 const struct merge_options *how, enum merge_on_conflict take)
{
	CLEANUP(merge_done) struct merge whole = { 0 }, chosen = { 0 }, stop = { 0 };
	struct merge_options o = *how;
	struct err err = { 0 };

	o.on_conflict = take;
	CHECK_OK(merge_trees(b, &t->base, &t->ours, &t->theirs, &o, &whole, &err), &err);
	merge_by_choices(b, &t->base, &t->ours, &t->theirs, &o, take, &chosen);
	n_chosen += whole.n_conflicts;
	if (object_id_equal(&whole.root, &chosen.root))
		return;
	o.on_conflict = MERGE_STOP;
	CHECK_OK(merge_trees(b, &t->base, &t->ours, &t->theirs, &o, &stop, &err), &err);
	if (!o.no_renames && !tells_no_more(&whole, &stop)) {
		n_by_wish++;
		return;
	}
	t->merged[0] = t->base;
	complain(s, t, 0, "", "becomes another tree if each conflict is settled by itself");
}

TEST(one_side_of_each_conflict_is_that_side_of_all)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("choices"), STORE_CREATE);
	static struct triple t;
	const uint64_t seed = first_seed(), n = rounds(1000);

	failures = 0;
	for (uint64_t i = 0; i < n; i++) {
		CLEANUP(batch_end_p) struct batch *made = stock_begin(s);
		CLEANUP(batch_end_p) struct batch *b = NULL;

		make_triple(made, seed + i, &t);
		stock_commit(made);
		b = stock_begin(s);
		for (int renames = 0; renames < 2; renames++) {
			const struct merge_options o = { .now = 1, .no_renames = !renames };

			check_chosen(s, &t, b, &o, MERGE_OURS);
			check_chosen(s, &t, b, &o, MERGE_THEIRS);
		}
	}
	printf("# %lu conflicts, %lu that only a wish for all makes\n", n_chosen, n_by_wish);
	CHECK(n_chosen > n / 4 && n_by_wish <= n / 50);
	CHECK_EQ(failures, 0);
}

/* --- on disk ------------------------------------------------------------------------------ */

/* The directory becomes what the root says. */
static void make_directory(struct grove *g, const struct object_id *now,
			   const struct object_id *wanted)
{
	static const struct apply_options none;
	CLEANUP(plan_done) struct plan p = grove_plan(g, now, wanted);
	CLEANUP(apply_report_done) struct apply_report report = { 0 };
	struct err err = { 0 };

	CHECK_OK(apply_plan(g->s, g->path, &p, &none, &report, &err), &err);
	CHECK_EQ(report.n, 0);
}

static void check_same(struct grove *g, const struct triple *t, size_t way,
		       const struct object_id *wanted, const struct object_id *got)
{
	CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;
	CLEANUP(sights_done) struct sights x;
	CLEANUP(sights_done) struct sights y;

	sights_of(g->s, wanted, &x);
	sights_of(g->s, got, &y);
	sights_tell(&x, &a);
	sights_tell(&y, &b);
	if (strcmp(buf_str(&a), buf_str(&b)) == 0)
		return;
	if (failures < SHOWN)
		show(g->s, "on disk", got);
	complain(g->s, t, way, "", "differs on disk");
}

/* What the directory becomes if all that the merge did to it is undone; it is left as it is. */
static void check_undo(struct grove *g, const struct triple *t, size_t way,
		       const struct object_id *before, const struct object_id *now)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);
	struct triple back = {
		.seed = t->seed,
		.base = t->merged[way],
		.ours = *now,
		.theirs = *before,
	};

	merge_triple(b, &back, way);
	stock_name(b, REF_SNAPSHOT, "undone", &back.merged[way], REF_REPLACE);
	stock_commit(b);
	if (back.n_conflicts[way] > 0)
		complain(g->s, &back, way, "", "has a conflict if it is undone");
	check_same(g, &back, way, before, &back.merged[way]);
}

TEST(a_directory_shows_the_merged_tree_and_an_undo_takes_it_back)
{
	CLEANUP(grove_done) struct grove g = grove_new("grove");
	const uint64_t seed = first_seed(), n = rounds(100);
	struct object_id now = grove_capture(&g), before;

	failures = 0;
	for (uint64_t i = 0; i < n; i++) {
		CLEANUP(batch_end_p) struct batch *made = stock_begin(g.s);
		CLEANUP(batch_end_p) struct batch *merged = NULL;
		const size_t way = i % ARRAY_LEN(ways);
		struct triple t;

		make_triple(made, seed + i, &t);
		stock_name(made, REF_SNAPSHOT, "ours", &t.ours, REF_REPLACE);
		stock_name(made, REF_SNAPSHOT, "base", &t.base, REF_REPLACE);
		stock_name(made, REF_SNAPSHOT, "theirs", &t.theirs, REF_REPLACE);
		stock_commit(made);
		make_directory(&g, &now, &t.ours);
		now = grove_capture(&g);
		check_same(&g, &t, way, &t.ours, &now);
		/* Half of them with the numbers that a real directory has. */
		if (i % 2)
			t.ours = now;
		before = now;
		merged = stock_begin(g.s);
		merge_triple(merged, &t, way);
		stock_name(merged, REF_SNAPSHOT, "merged", &t.merged[way], REF_REPLACE);
		stock_commit(merged);
		make_directory(&g, &now, &t.merged[way]);
		now = grove_capture(&g);
		check_same(&g, &t, way, &t.merged[way], &now);
		check_undo(&g, &t, way, &before, &now);
	}
	CHECK_EQ(failures, 0);
	CHECK(grove_is_tidy(&g));
	stock_check_clean(g.s);
}

TEST_MAIN("merge-links")
