#include "tests/unit/cowfs/core/file-fixture.h"

TEST(a_frozen_file_stays_as_it_was)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 4 * BLOCK), frozen = { 0 };

	write_text(&w, &f, 10, "as it was");
	frozen = freeze(&f);
	write_text(&w, &f, 10, "something else");
	truncate_to(&f, 15);
	punch(&w, &f, 0, 15);
	check_filled(&w, &frozen, 0, 10);
	check_text(&w, &frozen, 10, "as it was");
	check_filled(&w, &frozen, 19, 4 * BLOCK - 19);
	check_zeros(&w, &f, 0, 15);
}

TEST(a_file_settled_without_changes_is_stored_and_takes_nothing)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 5 * BLOCK);

	write_text(&w, &f, 10, "x");
	write_full(&w, &f, 5 * BLOCK, 3 * BLOCK + 1);
	punch(&w, &f, BLOCK, 2 * BLOCK);
	truncate_to(&f, 20 * BLOCK);
	persist(&w, &f);
	CHECK(file_is_stored(&f));
	CHECK_EQ(file_memory(&f), 0);
	CHECK_EQ(f.data, 7 * BLOCK);
	CHECK(!f.list);
	check_filled(&w, &f, 3 * BLOCK, 5 * BLOCK + 1);
}

TEST(an_unchanged_file_is_stored_as_what_it_is)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 3 * BLOCK), frozen = freeze(&f);
	CLEANUP(batch_end_p) struct batch *b = stock_begin(w.s);
	const uint64_t rows = stock_rows(w.s);
	struct err err = { 0 };
	struct content c;

	CHECK_OK(file_store(&frozen, b, w.c, &c, &err), &err);
	stock_commit(b);
	CHECK(content_equal(&c, &f.base));
	CHECK_EQ(stock_rows(w.s), rows);
}

TEST(blocks_that_changed_since_the_freeze_stay_in_memory_alone)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file(), frozen = { 0 };
	struct content stored;

	write_full(&w, &f, 0, 8 * BLOCK);
	frozen = freeze(&f);
	write_text(&w, &f, 3 * BLOCK + 5, "new");
	stored = store_file(&w, &frozen);
	settle(&f, &frozen, &stored);
	CHECK_EQ(f.n, 1);
	CHECK_EQ(f.list[0].first, 3);
	CHECK_EQ(file_memory(&f), BLOCK);
	check_filled(&w, &f, 0, 3 * BLOCK + 5);
	check_text(&w, &f, 3 * BLOCK + 5, "new");
	check_filled(&w, &f, 3 * BLOCK + 8, 5 * BLOCK - 8);
	CHECK_EQ(f.data, f.size);
}

TEST(what_was_cut_or_punched_since_the_freeze_stays_away)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file(), frozen = { 0 };
	struct content stored;

	write_full(&w, &f, 0, 8 * BLOCK);
	frozen = freeze(&f);
	punch(&w, &f, BLOCK, BLOCK);
	truncate_to(&f, 6 * BLOCK + 10);
	truncate_to(&f, 9 * BLOCK);
	stored = store_file(&w, &frozen);
	settle(&f, &frozen, &stored);
	check_filled(&w, &f, 0, BLOCK);
	check_zeros(&w, &f, BLOCK, BLOCK);
	check_filled(&w, &f, 2 * BLOCK, 4 * BLOCK + 10);
	check_zeros(&w, &f, 6 * BLOCK + 10, 3 * BLOCK - 10);
	CHECK_EQ(seek_from(&w, &f, 0, true), BLOCK);
	CHECK_EQ(seek_from(&w, &f, 2 * BLOCK, true), 7 * BLOCK);
}

TEST(a_file_cut_to_nothing_since_the_freeze_has_nothing_of_it)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2 * BLOCK), frozen = { 0 };
	struct content stored;

	write_text(&w, &f, 10, "x");
	frozen = freeze(&f);
	truncate_to(&f, 0);
	write_text(&w, &f, 20, "y");
	stored = store_file(&w, &frozen);
	settle(&f, &frozen, &stored);
	CHECK_EQ(f.size, 21);
	check_zeros(&w, &f, 0, 20);
	check_text(&w, &f, 20, "y");
}

TEST(a_file_that_became_a_copy_of_another_since_the_freeze_is_left_alone)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2 * BLOCK), frozen = { 0 };
	CLEANUP(file_done) struct file other = { 0 }, others = { 0 };
	struct content stored;

	CHECK_EQ(file_share(&f, &other), 0);
	others = freeze(&other);
	write_text(&w, &f, 10, "changed");
	frozen = freeze(&f);
	file_done(&f);
	CHECK_EQ(file_share(&other, &f), 0);
	stored = store_file(&w, &frozen);
	settle(&f, &frozen, &stored);
	check_filled(&w, &f, 0, 2 * BLOCK);
}

TEST(a_persist_that_failed_leaves_a_file_that_can_be_persisted)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2 * BLOCK), frozen = { 0 };

	write_text(&w, &f, 10, "one");
	frozen = freeze(&f);
	write_text(&w, &f, BLOCK + 10, "two");
	file_done(&frozen);
	persist(&w, &f);
	CHECK(file_is_stored(&f));
	check_text(&w, &f, 10, "one");
	check_text(&w, &f, BLOCK + 10, "two");
}

TEST(storing_merges_each_partial_block_with_what_is_underneath)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2 * BLOCK);

	write_full(&w, &f, 598 * BLOCK, 2 * BLOCK + 77);
	persist(&w, &f);
	write_text(&w, &f, 100, "a");
	write_text(&w, &f, 599 * BLOCK + 100, "b");
	write_text(&w, &f, 600 * BLOCK + 70, "c");
	CHECK_EQ(w.needed, 0);
	persist(&w, &f);
	check_text(&w, &f, 100, "a");
	check_filled(&w, &f, 101, BLOCK);
	check_filled(&w, &f, 598 * BLOCK, BLOCK + 100);
	check_text(&w, &f, 599 * BLOCK + 100, "b");
	check_filled(&w, &f, 599 * BLOCK + 101, BLOCK - 31);
	check_text(&w, &f, 600 * BLOCK + 70, "c");
	check_filled(&w, &f, 600 * BLOCK + 71, 6);
}

TEST_MAIN("file-store")
