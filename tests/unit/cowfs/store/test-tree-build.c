/* Where the builder cuts a directory into nodes, and what it does when it cannot store one. */
#include "tests/unit/cowfs/store/shape-fixture.h"

TEST(an_empty_directory_is_one_node_without_entries)
{
	CLEANUP(world_done) struct world w = world_new("empty");
	const struct object_id tree = world_build(&w, NULL, 0);
	CLEANUP(shape_done) struct shape sh = shape_of(w.s, &tree);

	CHECK_EQ(sh.n_ids, 1);
	CHECK_EQ(sh.leaves[0], 0);
}

enum hit { ANY, HIT, MISS };

/* Are all of these bits zero, or, of a miss, all but one of them, which `i` chooses? */
static bool bits_fit(uint64_t bits, unsigned width, enum hit want, size_t i)
{
	if (want == ANY)
		return true;
	return (bits & ((1u << width) - 1)) == (want == HIT ? 0 : 1u << i % width);
}

/* The i-th name in order, with or barely without the hash at which nodes are cut. */
static void craft_name(const struct object_key *key, size_t i, enum hit leaf, enum hit branch,
		       char name[24])
{
	uint64_t hash;
	unsigned salt = 0;

	do {
		const int len = snprintf(name, 24, "%08zx-%x", i, salt++);

		hash = object_name_hash(key, name, (size_t)len);
	} while (!bits_fit(hash, 8, leaf, i) || !bits_fit(hash >> 8, 7, branch, i / LEAF_MIN));
}

static void add_crafted(struct world *w, size_t i, enum hit leaf, enum hit branch)
{
	struct tree_entry e;
	char name[24];

	craft_name(store_key(w->s), i, leaf, branch, name);
	e = sample_file(name, 1);
	world_add(w, &e, 1);
}

TEST(names_that_are_never_cut_fill_leaves_to_their_limit)
{
	CLEANUP(world_done) struct world w = world_new("never");
	CLEANUP(shape_done) struct shape sh = { 0 };

	for (size_t i = 0; i < 3 * LEAF_MAX + 1; i++)
		add_crafted(&w, i, MISS, ANY);
	sh = finish_shape(&w);
	CHECK_EQ(sh.n_leaves, 4);
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(sh.leaves[i], LEAF_MAX);
	CHECK_EQ(sh.leaves[3], 1);
	CHECK_EQ(sh.level, 1);
}

TEST(names_that_are_always_cut_fill_leaves_to_their_least)
{
	CLEANUP(world_done) struct world w = world_new("always");
	CLEANUP(shape_done) struct shape sh = { 0 };

	for (size_t i = 0; i < 3 * LEAF_MIN; i++)
		add_crafted(&w, i, HIT, ANY);
	sh = finish_shape(&w);
	CHECK_EQ(sh.n_leaves, 3);
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(sh.leaves[i], LEAF_MIN);
}

TEST(a_directory_that_ends_where_a_leaf_does_is_that_leaf)
{
	CLEANUP(world_done) struct world w = world_new("exact");
	CLEANUP(shape_done) struct shape sh = { 0 };

	for (size_t i = 0; i < LEAF_MIN; i++)
		add_crafted(&w, i, i == LEAF_MIN - 1 ? HIT : ANY, ANY);
	sh = finish_shape(&w);
	CHECK_EQ(sh.level, 0);
	CHECK_EQ(sh.leaves[0], LEAF_MIN);
}

/* Of the bits of a name's hash that decide behind a long entry: at least `from`, below `to`. */
struct bounds {
	uint32_t from, to;
};

/* The i-th name in order, of a symlink that takes `size` bytes. */
static void add_long(struct world *w, size_t i, size_t name_len, size_t size, struct bounds b)
{
	char name[TREE_NAME_LEN_MAX + 1], target[TREE_TARGET_LEN_MAX + 1];
	const size_t target_len = size - RECORD - name_len;
	struct tree_entry e;
	unsigned salt = 0;
	uint64_t bits;

	CHECK(target_len >= 1 && target_len < sizeof(target));
	memset(target, 't', target_len);
	target[target_len] = '\0';
	do {
		snprintf(name, sizeof(name), "%06zx%0*x", i, (int)name_len - 6, salt++);
		bits = object_name_hash(store_key(w->s), name, name_len) >> 16 & LONG_CUT_BITS;
	} while (bits < b.from || bits >= b.to);
	e = sample_symlink(name, target);
	world_add(w, &e, 1);
}

/* Three leaves of `fit`: the entry numbered `at` in each within its own bounds, the rest in `b`. */
static struct shape long_leaves(struct world *w, size_t name_len, size_t size, size_t fit,
				struct bounds b, size_t at, struct bounds own)
{
	for (size_t i = 0; i < 3 * fit; i++)
		add_long(w, i, name_len, size, i % fit == at ? own : b);
	return finish_shape(w);
}

static void check_leaves(const struct shape *sh, size_t n, uint32_t entries)
{
	CHECK_EQ(sh->n_leaves, n);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(sh->leaves[i], entries);
}

TEST(long_names_and_targets_fill_leaves_to_192_kib)
{
	const size_t name_len = 245, each = RECORD + name_len + TREE_TARGET_LEN_MAX, fit = 44;
	const uint32_t over = (uint32_t)each - LONG_ENTRY;
	const struct bounds never = { over + 1, LONG_CUT_BITS + 1 };
	CLEANUP(world_done) struct world w = world_new("targets");
	CLEANUP(shape_done) struct shape exact =
	    long_leaves(&w, name_len, each, fit, never, 0, never);
	CLEANUP(shape_done) struct shape more =
	    long_leaves(&w, name_len + 1, each + 1, fit - 1, never, 0, never);

	CHECK_EQ(HEADER + fit * each, LEAF_BYTES_MAX);
	CHECK_EQ(exact.bytes_max, LEAF_BYTES_MAX);
	check_leaves(&exact, 3, fit);
	check_leaves(&more, 3, fit - 1);
}

TEST(a_leaf_of_24_kib_ends_behind_a_long_entry_of_a_fitting_name)
{
	const size_t each = 2456, fit = 10, less_each = 599, less_fit = 41;
	const uint32_t over = (uint32_t)each - LONG_ENTRY;
	const struct bounds always = { 0, over - 1 }, never = { over + 1, LONG_CUT_BITS + 1 };
	const struct bounds just = { over - 1, over }, just_not = { over, over + 1 };
	const struct bounds less_always = { 0, (uint32_t)less_each - LONG_ENTRY };
	CLEANUP(world_done) struct world w = world_new("long");
	CLEANUP(shape_done) struct shape exact =
	    long_leaves(&w, 20, each, fit, always, fit - 1, just);
	CLEANUP(shape_done) struct shape less =
	    long_leaves(&w, 20, less_each, less_fit + 1, less_always, 0, less_always);
	CLEANUP(shape_done) struct shape not =
	    long_leaves(&w, 20, each, fit, never, fit - 1, just_not);

	CHECK_EQ(HEADER + fit * each, LEAF_BYTES_MIN);
	check_leaves(&exact, 3, fit);
	CHECK_EQ(HEADER + less_fit * less_each, LEAF_BYTES_MIN - 1);
	check_leaves(&less, 3, less_fit + 1);
	check_leaves(&not, 1, 3 * fit);
}

TEST(an_entry_of_256_bytes_is_not_long_and_one_of_257_is)
{
	const struct bounds least = { 0, 1 }, rest = { 1, LONG_CUT_BITS + 1 };
	CLEANUP(world_done) struct world w = world_new("not-long");

	CHECK(HEADER + 100 * LONG_ENTRY > LEAF_BYTES_MIN);
	for (size_t more = 0; more < 2; more++) {
		CLEANUP(shape_done) struct shape sh = { 0 };

		for (size_t i = 0; i < LEAF_MIN - 1; i++)
			add_long(&w, i, 20, LONG_ENTRY + more, i == 99 ? least : rest);
		sh = finish_shape(&w);
		CHECK_EQ(sh.n_leaves, 1 + more);
		CHECK_EQ(sh.leaves[0], more ? 100 : LEAF_MIN - 1);
	}
}

/* Leaves of LEAF_MIN entries; the child numbered `cut`, and no other, ends its branch. */
static void add_leaves(struct world *w, size_t leaves, size_t cut)
{
	for (size_t i = 0; i < leaves * LEAF_MIN; i++) {
		const bool first = i % LEAF_MIN == 0, last = i % LEAF_MIN == LEAF_MIN - 1;
		const enum hit branch = i / LEAF_MIN == cut ? HIT : MISS;

		add_crafted(w, i, last ? HIT : ANY, first ? branch : ANY);
	}
}

/* Twice with one builder: how the first ended must not be seen in the second. */
static struct shape crafted_leaves(struct world *w, size_t leaves, size_t cut)
{
	struct object_id first;
	struct shape sh;

	add_leaves(w, leaves, cut);
	first = world_finish(w, NULL);
	add_leaves(w, leaves, cut);
	sh = finish_shape(w);
	CHECK(object_id_equal(&sh.ids[0], &first));
	return sh;
}

TEST(a_branch_is_cut_after_its_least_and_never_leaves_one_child_over)
{
	static const struct {
		size_t leaves, cut;
		unsigned level;
		size_t n_branches;
		uint32_t last;
	} cases[] = {
		{ 1, 0, 0, 0, 0 },
		{ 2, 0, 1, 1, 2 },
		{ BRANCH_MIN + 1, BRANCH_MIN - 2, 1, 1, BRANCH_MIN + 1 },
		{ BRANCH_MIN, BRANCH_MIN - 1, 1, 1, BRANCH_MIN },
		{ BRANCH_MIN + 1, BRANCH_MIN - 1, 1, 1, BRANCH_MIN + 1 },
		{ BRANCH_MIN + 2, BRANCH_MIN - 1, 2, 3, 2 },
		{ BRANCH_MIN + 3, BRANCH_MIN - 1, 2, 3, 3 },
		{ BRANCH_MIN + 3, BRANCH_MIN, 2, 3, 2 },
	};
	CLEANUP(world_done) struct world w = world_new("branches");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(shape_done) struct shape sh =
		    crafted_leaves(&w, cases[i].leaves, cases[i].cut);

		CHECK_EQ(sh.n_leaves, cases[i].leaves);
		CHECK_EQ(sh.level, cases[i].level);
		CHECK_EQ(sh.n_branches, cases[i].n_branches);
		if (sh.n_branches > 0)
			CHECK_EQ(sh.branches[sh.n_branches - 1], cases[i].last);
	}
}

TEST(names_that_never_cut_a_branch_fill_it_to_its_limit)
{
	CLEANUP(world_done) struct world w = world_new("wide");
	CLEANUP(shape_done) struct shape one = crafted_leaves(&w, BRANCH_MAX + 1, SIZE_MAX);
	CLEANUP(shape_done) struct shape two = crafted_leaves(&w, BRANCH_MAX + 2, SIZE_MAX);

	CHECK_EQ(one.level, 1);
	CHECK_EQ(one.branches[0], BRANCH_MAX + 1);
	CHECK_EQ(two.level, 2);
	CHECK_EQ(two.n_branches, 3);
	CHECK_EQ(two.branches[1], BRANCH_MAX);
	CHECK_EQ(two.branches[2], 2);
}

/* The second call fails as the first did, until the directory is finished. */
static void fails_at(struct world *w, const struct tree_entry *list, size_t n, size_t at)
{
	struct tree_summary below;
	struct err err = { 0 };
	struct object_id id;

	world_add(w, list, at);
	if (at < n) {
		CHECK_EQ(tree_builder_add(w->t, &list[at], &err), -EBADMSG);
		CHECK_EQ(tree_builder_add(w->t, &list[at + 1], &err), -EBADMSG);
		CHECK_HAS(err.msg, "an earlier part of the directory could not be stored");
	}
	CHECK_EQ(tree_builder_finish(w->t, &id, &below, &err), -EBADMSG);
}

TEST(a_directory_that_could_not_be_stored_fails_and_the_next_one_does_not)
{
	static char names[3 * LEAF_MIN][24];
	static struct tree_entry list[3 * LEAF_MIN];
	CLEANUP(world_done) struct world w = world_new("failed");
	CLEANUP(shape_done) struct shape sh = { 0 };
	struct object_id tree, other, again;

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		craft_name(store_key(w.s), i, HIT, ANY, names[i]);
		list[i] = sample_file(names[i], 1);
	}
	tree = world_build(&w, list, ARRAY_LEN(list));
	other = world_build(&w, list + 1, 2 * LEAF_MIN);
	sh = shape_of(w.s, &tree);
	CHECK_EQ(sh.n_ids, 4);

	/* The top, which is put at the end, then the second leaf, then the first. */
	for (size_t i = 0; i < 3; i++) {
		static const size_t at[] = { 3 * LEAF_MIN, 2 * LEAF_MIN - 1, LEAF_MIN - 1 };
		static const size_t node[] = { 0, 2, 1 };

		damage_object(store_path(w.s), OBJECT_TREE, &sh.ids[node[i]]);
		fails_at(&w, list, ARRAY_LEN(list), at[i]);
		world_add(&w, list + 1, 2 * LEAF_MIN);
		again = world_finish(&w, NULL);
		CHECK(object_id_equal(&again, &other));
	}
}

TEST_MAIN("tree-build")
