/* What an edit makes of a directory must be what the builder makes of all that is there. */
#include "tests/unit/cowfs/store/row-fixture.h"

static uint32_t random_version(struct test_rng *rng)
{
	return test_rand(rng) % 3 == 0 ? 0 : 1 + (uint32_t)(test_rand(rng) % 100000);
}

static void random_edit(struct row *row, struct edit_list *l, struct test_rng *rng)
{
	const size_t from = test_rand(rng) % row->n;
	const size_t count = test_rand(rng) % (test_rand(rng) % 2 ? 10 : row->n / 2);
	const uint32_t v = random_version(rng);

	switch (test_rand(rng) % 8) {
	case 0: /* nothing */
		break;
	case 1: /* all of them */
		for (size_t i = 0; i < row->n; i++)
			change(row, l, i, test_rand(rng) % 4 ? v : random_version(rng));
		break;
	case 2: /* a run, the same */
	case 3:
		for (size_t i = 0; i < count; i++)
			change(row, l, from + i, v);
		break;
	case 4: /* here and there */
		for (size_t i = 0; i < row->n; i += 1 + test_rand(rng) % (row->n / 4))
			change(row, l, i, random_version(rng));
		break;
	case 5: /* the last */
		change(row, l, row->n - 1 - test_rand(rng) % 10, random_version(rng));
		break;
	case 6: /* the first */
		change(row, l, test_rand(rng) % 10, random_version(rng));
		break;
	default: /* one */
		change(row, l, from, random_version(rng));
	}
}

static void random_edits(enum row_kind kind, size_t n, unsigned steps, const char *name)
{
	CLEANUP(world_done) struct world w = world_new(name);
	CLEANUP(row_done) struct row row = row_new(&w, kind, n);
	struct test_rng rng = { .s = test_seed() };

	fill_row(&row, n);
	check_row(&row);
	for (unsigned i = 0; i < steps; i++) {
		CLEANUP(list_done) struct edit_list l = list_new(&row);

		random_edit(&row, &l, &rng);
		edit_row(&row, &l);
		check_row(&row);
	}
}

TEST(any_edit_of_ordinary_entries_gives_what_building_anew_gives)
{
	random_edits(ORDINARY, 500, 60, "random-small");
	random_edits(ORDINARY, 20000, 40, "random");
}

TEST(any_edit_of_long_entries_gives_what_building_anew_gives)
{
	random_edits(LONG, 2000, 60, "random-long");
}

TEST(any_edit_of_leaves_that_end_at_their_limit_gives_what_building_anew_gives)
{
	random_edits(NEVER, 1000, 60, "random-never");
}

TEST(any_edit_of_leaves_and_branches_of_the_least_size_gives_what_building_anew_gives)
{
	random_edits(ALWAYS, 3 * ALWAYS_BRANCH, 60, "random-always");
}

TEST(a_directory_that_grows_or_shrinks_at_its_end_ends_in_no_branch_of_one_child)
{
	static const size_t sizes[] = {
		ALWAYS_BRANCH,
		ALWAYS_BRANCH + 1,
		ALWAYS_BRANCH + ALWAYS_LEAF,
		ALWAYS_BRANCH + ALWAYS_LEAF + 1,
		ALWAYS_BRANCH + 2 * ALWAYS_LEAF,
		2 * ALWAYS_BRANCH - 1,
		2 * ALWAYS_BRANCH + 1,
		2 * ALWAYS_BRANCH + ALWAYS_LEAF + 1,
		ALWAYS_LEAF,
		ALWAYS_LEAF + 1,
		1,
		0,
	};
	CLEANUP(world_done) struct world w = world_new("ends");
	CLEANUP(row_done) struct row row = row_new(&w, ALWAYS, 2 * ALWAYS_BRANCH + 20);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t j = 0; j < ARRAY_LEN(sizes); j++) {
			fill_row(&row, sizes[i]);
			fill_row(&row, sizes[j]);
			check_row(&row);
		}
}

TEST(an_entry_that_finds_room_in_the_leaf_before_it_goes_there)
{
	CLEANUP(world_done) struct world w = world_new("room");
	CLEANUP(row_done) struct row row = row_new(&w, NEVER, 100);
	CLEANUP(list_done) struct edit_list all = list_new(&row);

	for (size_t i = 0; i < row.n; i++)
		change(&row, &all, i, TREE_TARGET_LEN_MAX - 1);
	edit_row(&row, &all);
	for (size_t i = 40; i < 50; i++)
		for (unsigned step = 0; step < 2; step++) {
			CLEANUP(list_done) struct edit_list l = list_new(&row);

			change(&row, &l, i, step == 0 ? 1 : TREE_TARGET_LEN_MAX - 1);
			edit_row(&row, &l);
			check_row(&row);
		}
}

TEST(leaves_that_come_or_go_move_the_ends_of_the_branches_behind_them)
{
	CLEANUP(world_done) struct world w = world_new("leaves");
	CLEANUP(row_done) struct row row = row_new(&w, ALWAYS, 3 * ALWAYS_BRANCH);

	fill_row(&row, row.n);
	for (size_t leaves = 1; leaves < 3; leaves++)
		for (size_t at = 0; at < 2 * ALWAYS_BRANCH; at += 31 * ALWAYS_LEAF)
			for (unsigned step = 0; step < 2; step++) {
				CLEANUP(list_done) struct edit_list l = list_new(&row);

				for (size_t i = 0; i < leaves * ALWAYS_LEAF; i++)
					change(&row, &l, at + i, step);
				edit_row(&row, &l);
				check_row(&row);
			}
}

TEST(what_follows_a_branch_of_branches_alone_joins_what_is_in_it)
{
	const size_t first = 64 * ALWAYS_BRANCH; /* names below the first branch of level 2 */
	static const size_t more[] = {
		ALWAYS_BRANCH + 2 * ALWAYS_LEAF, /* two branches of level 1 */
		ALWAYS_BRANCH,                   /* one, which joins that of level 2 */
		ALWAYS_LEAF - 1,                 /* a leaf, which joins the last one of level 1 */
		ALWAYS_LEAF + 1,                 /* two leaves, again one branch of level 1 */
	};
	CLEANUP(world_done) struct world w = world_new("high");
	CLEANUP(row_done) struct row row = row_new(&w, STEADY, first + more[0]);

	for (size_t i = 1; i < ARRAY_LEN(more); i++) {
		fill_row(&row, first + more[0]);
		count_anew(row.c);
		fill_row(&row, first + more[i]);
		CHECK(counted.puts <= 8);
		check_row(&row);
	}
}

TEST(an_empty_directory_may_be_edited_and_may_be_what_is_left)
{
	CLEANUP(world_done) struct world w = world_new("empty");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 10);
	struct object_id empty;

	fill_row(&row, 0);
	check_row(&row);
	empty = row.tree;
	CHECK(!object_id_is_zero(&empty));
	fill_row(&row, 0);
	CHECK(object_id_equal(&row.tree, &empty));
	CHECK_OK(tree_edit(w.b, row.c, &empty, NULL, 0, &row.tree, &row.below, NULL), NULL);
	CHECK(object_id_equal(&row.tree, &empty));
	fill_row(&row, 10);
	check_row(&row);
	fill_row(&row, 0);
	CHECK(object_id_equal(&row.tree, &empty));
	CHECK_EQ(row.below.files, 0);
}

TEST(a_name_that_is_not_there_may_go)
{
	CLEANUP(world_done) struct world w = world_new("absent");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 2000);
	struct object_id before;

	fill_row(&row, 1000);
	before = row.tree;
	for (size_t i = 1000; i < 2000; i += 111) {
		CLEANUP(list_done) struct edit_list l = list_new(&row);

		change(&row, &l, i, 0);
		edit_row(&row, &l);
		CHECK(object_id_equal(&row.tree, &before));
	}
}

TEST(a_name_before_the_first_or_behind_the_last_is_found_its_place)
{
	static const struct tree_change ends[] = { { "!", 1, NULL }, { "~", 1, NULL } };
	CLEANUP(world_done) struct world w = world_new("around");
	CLEANUP(row_done) struct row row = row_new(&w, ORDINARY, 3000);
	struct tree_entry e[] = { sample_file("!", 5), sample_file("~", 6) };
	struct tree_change list[] = { ends[0], ends[1] };
	struct object_id tree, before;
	struct tree_summary below;
	struct err err = { 0 };

	fill_row(&row, 3000);
	before = row.tree;
	list[0].entry = &e[0];
	list[1].entry = &e[1];
	CHECK_OK(tree_edit(w.b, row.c, &before, list, 2, &tree, &below, &err), &err);
	CHECK_EQ(below.files, row.below.files + 2);
	world_commit(&w);
	world_add(&w, &e[0], 1);
	for (size_t i = 0; i < row.n; i++) {
		const struct tree_entry old = entry_at(&row, i, row.version[i]);

		world_add(&w, &old, 1);
	}
	world_add(&w, &e[1], 1);
	row.tree = world_finish(&w, NULL);
	CHECK(object_id_equal(&tree, &row.tree));
	CHECK_OK(tree_edit(w.b, row.c, &tree, ends, 2, &tree, &below, &err), &err);
	CHECK(object_id_equal(&tree, &before));
}

TEST_MAIN("tree-edit")
