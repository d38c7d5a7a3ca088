#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cowfs/core/file-i.h"
#include "tests/unit/cowfs/core/file-fixture.h"

/* --- writing ----------------------------------------------------------------------------- */

TEST(a_new_file_is_stored_and_takes_nothing)
{
	CLEANUP(file_done) struct file f = new_file();

	CHECK(file_is_stored(&f));
	CHECK_EQ(file_memory(&f), 0);
	CHECK_EQ(f.data, 0);
}

TEST(what_was_written_is_read_and_the_rest_is_zeros)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_text(&w, &f, 3 * BLOCK + 100, "hello");
	write_text(&w, &f, 3 * BLOCK + 10, "before");
	CHECK_EQ(f.size, 3 * BLOCK + 105);
	check_zeros(&w, &f, 0, 3 * BLOCK + 10);
	check_text(&w, &f, 3 * BLOCK + 10, "before");
	check_zeros(&w, &f, 3 * BLOCK + 16, 84);
	check_text(&w, &f, 3 * BLOCK + 100, "hello");
	CHECK(!file_is_stored(&f));
	CHECK_EQ(w.needed, 0);
}

TEST(a_small_file_takes_little_memory)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_full(&w, &f, 0, 100);
	CHECK(file_memory(&f) <= 512);
	write_full(&w, &f, 100, 3996);
	CHECK(file_memory(&f) <= 4096);
	write_full(&w, &f, 4096, 1);
	CHECK(file_memory(&f) <= 16384);
	write_full(&w, &f, 4097, BLOCK);
	CHECK(file_memory(&f) <= 2 * BLOCK);
	check_filled(&w, &f, 0, 4097 + BLOCK);
}

TEST(a_write_of_many_blocks_at_once_lands_in_all_of_them)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_text(&w, &f, 7 * BLOCK + 5, "in the way");
	write_full(&w, &f, 1000, 100 * BLOCK);
	check_filled(&w, &f, 1000, 100 * BLOCK);
	CHECK_EQ(f.n, 101);
	CHECK_EQ(f.data, f.size);
}

TEST(a_write_beyond_what_a_file_can_hold_is_refused)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();
	struct need need;
	int64_t grown;

	CHECK_EQ(file_write(&f, w.c, INT64_MAX, "x", 1, &grown, &need), -EFBIG);
	CHECK_EQ(file_write(&f, w.c, UINT64_MAX, "x", 1, &grown, &need), -EFBIG);
	CHECK_EQ(f.size, 0);
	write_text(&w, &f, INT64_MAX - 1, "x");
	CHECK_EQ(f.size, INT64_MAX);
	check_text(&w, &f, INT64_MAX - 1, "x");
	CHECK_EQ(seek_from(&w, &f, 0, false), (INT64_MAX / BLOCK) * BLOCK);
}

TEST(an_empty_write_changes_nothing)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_at(&w, &f, 1000, "", 0);
	CHECK_EQ(f.size, 0);
	CHECK(file_is_stored(&f));
}

/* --- what is underneath ------------------------------------------------------------------ */

TEST(writing_needs_nothing_of_the_store_as_long_as_it_lengthens_the_range)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 3 * BLOCK);

	write_text(&w, &f, BLOCK + 1000, "middle");
	write_text(&w, &f, BLOCK + 1006, " behind");
	write_text(&w, &f, BLOCK + 993, "before ");
	write_text(&w, &f, BLOCK + 1000, "MIDDLE");
	CHECK_EQ(w.needed, 0);
	check_text(&w, &f, BLOCK + 993, "before MIDDLE behind");
	check_filled(&w, &f, 0, BLOCK + 993);
	check_filled(&w, &f, BLOCK + 1013, 2 * BLOCK - 1013);
}

TEST(a_write_elsewhere_in_the_block_needs_the_chunk_and_changes_nothing_before)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 3 * BLOCK);
	struct need need = { .kind = NEED_CALM };
	struct file before;
	int64_t grown;

	write_text(&w, &f, BLOCK + 1000, "here");
	before = f;
	CHECK_EQ(file_write(&f, w.c, BLOCK + 2000, "there", 5, &grown, &need), -EAGAIN);
	CHECK_EQ(need.kind, NEED_OBJECT);
	CHECK_EQ(need.object.kind, OBJECT_RECIPE);
	CHECK(object_id_equal(&need.object.id, &f.base.id));
	check_untouched(&f, &before);
	CHECK_EQ(f.list[0].block->hi, 1004);

	write_text(&w, &f, BLOCK + 2000, "there");
	CHECK_EQ(w.needed, 2);
	write_text(&w, &f, BLOCK + 3000, "everywhere");
	CHECK_EQ(w.needed, 2);
	check_text(&w, &f, BLOCK + 1000, "here");
	check_filled(&w, &f, BLOCK + 1004, 996);
	check_text(&w, &f, BLOCK + 2000, "there");
}

TEST(a_write_that_hides_all_that_showed_needs_nothing)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, BLOCK + 2000);

	write_full(&w, &f, 0, BLOCK);
	write_text(&w, &f, BLOCK + 1500, "inside");
	write_full(&w, &f, BLOCK, 1500);
	truncate_to(&f, BLOCK + 1200);
	write_text(&w, &f, BLOCK + 9000, "behind");
	CHECK_EQ(w.needed, 0);
	check_filled(&w, &f, 0, BLOCK + 1200);
	check_zeros(&w, &f, BLOCK + 1200, 7800);
}

TEST(a_gap_behind_the_stored_bytes_needs_nothing)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2000);

	write_text(&w, &f, 1990, "over the end");
	write_text(&w, &f, 5000, "behind");
	CHECK_EQ(w.needed, 0);
	check_filled(&w, &f, 0, 1990);
	check_text(&w, &f, 1990, "over the end");
	check_zeros(&w, &f, 2002, 2998);
	check_text(&w, &f, 5000, "behind");
}

TEST(a_write_over_a_stored_hole_needs_no_chunk)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	truncate_to(&f, TIB);
	persist(&w, &f);
	CHECK(file_is_stored(&f));
	write_text(&w, &f, 1000, "one");
	write_text(&w, &f, 9000, "two");
	CHECK_EQ(w.needed, 0);
	check_zeros(&w, &f, 1003, 7997);
}

/* --- shortening -------------------------------------------------------------------------- */

TEST(what_truncation_cut_off_does_not_come_back)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2 * BLOCK);

	write_text(&w, &f, 995, "in memory");
	truncate_to(&f, 1000);
	truncate_to(&f, 3 * BLOCK);
	check_filled(&w, &f, 0, 995);
	check_text(&w, &f, 995, "in me");
	check_zeros(&w, &f, 1000, 3 * BLOCK - 1000);
	CHECK_EQ(seek_from(&w, &f, 0, true), BLOCK);
	persist(&w, &f);
	check_filled(&w, &f, 0, 995);
	check_zeros(&w, &f, 1000, 3 * BLOCK - 1000);
	CHECK_EQ(f.data, BLOCK);
}

TEST(a_file_cut_to_nothing_has_forgotten_what_it_was)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2 * BLOCK);

	write_text(&w, &f, 5, "x");
	truncate_to(&f, 0);
	CHECK(file_is_stored(&f));
	CHECK_EQ(f.data, 0);
	CHECK_EQ(file_memory(&f), 0);
	write_text(&w, &f, 1000, "new");
	check_zeros(&w, &f, 0, 1000);
	CHECK_EQ(w.needed, 0);
}

TEST(a_punched_range_is_zeros_and_its_whole_blocks_are_holes)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 8 * BLOCK);

	punch(&w, &f, BLOCK / 2, 5 * BLOCK);
	CHECK_EQ(f.size, 8 * BLOCK);
	check_filled(&w, &f, 0, BLOCK / 2);
	check_zeros(&w, &f, BLOCK / 2, 5 * BLOCK);
	check_filled(&w, &f, 5 * BLOCK + BLOCK / 2, 2 * BLOCK + BLOCK / 2);
	CHECK_EQ(seek_from(&w, &f, 0, true), BLOCK);
	CHECK_EQ(seek_from(&w, &f, BLOCK, false), 5 * BLOCK);
	CHECK_EQ(f.data, 4 * BLOCK);
}

TEST(punching_up_to_the_end_makes_the_last_block_a_hole_too)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, BLOCK + 100);

	punch(&w, &f, BLOCK, UINT64_MAX);
	CHECK_EQ(f.size, BLOCK + 100);
	CHECK_EQ(seek_from(&w, &f, 0, true), BLOCK);
	CHECK_EQ(seek_from(&w, &f, BLOCK, false), -ENXIO);
	truncate_to(&f, 2 * BLOCK);
	check_zeros(&w, &f, BLOCK, BLOCK);
}

TEST(a_punch_of_a_terabyte_is_one_extent_and_runs_join)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_text(&w, &f, 4 * TIB, "end");
	write_text(&w, &f, 0, "start");
	persist(&w, &f);
	punch(&w, &f, TIB, TIB);
	CHECK_EQ(f.n, 1);
	punch(&w, &f, 3 * TIB, TIB / 2);
	CHECK_EQ(f.n, 2);
	write_text(&w, &f, TIB + 5 * BLOCK, "in it");
	CHECK_EQ(f.n, 4);
	punch(&w, &f, 2 * TIB, TIB);
	CHECK_EQ(f.n, 3);
	punch(&w, &f, 0, 4 * TIB);
	CHECK_EQ(f.n, 1);
	CHECK_EQ(seek_from(&w, &f, 0, false), 4 * TIB);
	CHECK_EQ(file_memory(&f), 0);
}

TEST(a_partial_punch_of_a_hole_leaves_it_one)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_text(&w, &f, 5 * BLOCK, "data");
	punch(&w, &f, 100, 100);
	CHECK_EQ(f.n, 1);
	persist(&w, &f);
	punch(&w, &f, 100, 3 * BLOCK);
	CHECK_EQ(seek_from(&w, &f, 0, false), 5 * BLOCK);
	punch(&w, &f, 100, 100);
	CHECK_EQ(file_memory(&f), 0);
}

TEST(a_punched_new_file_has_no_extents)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	write_full(&w, &f, 0, 4 * BLOCK);
	punch(&w, &f, 0, 4 * BLOCK);
	CHECK_EQ(f.n, 0);
	CHECK_EQ(f.data, 0);
	check_zeros(&w, &f, 0, 4 * BLOCK);
}

TEST(what_is_written_over_a_punched_block_hides_what_was_stored)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, BLOCK), copy = { 0 };

	punch(&w, &f, 0, BLOCK);
	write_text(&w, &f, 100, "over");
	CHECK_EQ(file_share(&f, &copy), 0);
	write_text(&w, &f, 90, "all of it and more");
	check_zeros(&w, &f, 0, 90);
	check_text(&w, &f, 90, "all of it and more");
	check_zeros(&w, &f, 108, BLOCK - 108);
	check_zeros(&w, &copy, 0, 100);
	check_text(&w, &copy, 100, "over");
	file_done(&copy);
}

/* --- reading ----------------------------------------------------------------------------- */

TEST(allocated_blocks_are_data_that_reads_as_zeros_and_takes_no_memory)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	truncate_to(&f, 10 * BLOCK + 5);
	write_at(&w, &f, 3 * BLOCK + 7, "abc", 3);
	allocate_at(&w, &f, BLOCK + 1, 5 * BLOCK);
	CHECK_EQ(f.data, 6 * BLOCK);
	CHECK_EQ(seek_from(&w, &f, 0, false), BLOCK);
	CHECK_EQ(seek_from(&w, &f, BLOCK, true), 7 * BLOCK);
	check_zeros(&w, &f, 0, 3 * BLOCK);
	check_bytes(&w, &f, 3 * BLOCK + 7, "abc", 3);
	/* What is beyond the end is not counted; the last block is. */
	allocate_at(&w, &f, 10 * BLOCK, TIB);
	CHECK_EQ(f.data, 6 * BLOCK + 5);
	persist(&w, &f);
	CHECK(file_is_stored(&f));
	CHECK_EQ(f.data, 6 * BLOCK + 5);
	CHECK_EQ(f.base.data, 6 * BLOCK + 5);
	/* A write into one leaves the others alone; a punch makes holes again. */
	write_at(&w, &f, 2 * BLOCK + 1, "x", 1);
	check_zeros(&w, &f, BLOCK, BLOCK);
	punch(&w, &f, BLOCK, 2 * BLOCK);
	persist(&w, &f);
	CHECK_EQ(f.data, 4 * BLOCK + 5);
	CHECK_EQ(seek_from(&w, &f, 0, false), 3 * BLOCK);
}

TEST(reading_ends_where_the_file_ends)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 1000);
	uint8_t bytes[100];

	CHECK_EQ(read_at(&w, &f, 950, bytes, sizeof(bytes)), 50);
	CHECK_EQ(read_at(&w, &f, 1000, bytes, sizeof(bytes)), 0);
	CHECK_EQ(read_at(&w, &f, UINT64_MAX, bytes, sizeof(bytes)), 0);
	CHECK_EQ(read_at(&w, &f, 0, bytes, 0), 0);
}

TEST(a_read_can_have_as_many_pieces_as_it_is_said_to)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 3 * BLOCK);
	struct piece list[FILE_PIECES(7)];
	struct need need;
	size_t n = 0;

	write_at(&w, &f, BLOCK - 2, "x", 1);
	write_at(&w, &f, BLOCK + 1, "y", 1);
	truncate_to(&f, BLOCK + 3);
	truncate_to(&f, 2 * BLOCK);
	check_filled(&w, &f, 0, 10); /* and now the nodes are in memory */
	CHECK_EQ(file_map(&f, w.c, BLOCK - 3, 7, list, &n, &need), 0);
	CHECK_EQ(n, 7);
	for (size_t i = 0; i < n; i++)
		block_unref(list[i].block);
}

TEST(what_was_mapped_does_not_change_while_it_is_held)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();
	struct piece list[FILE_PIECES(5)];
	struct need need;
	size_t n;

	write_text(&w, &f, 0, "first");
	CHECK_EQ(file_map(&f, w.c, 0, 5, list, &n, &need), 0);
	CHECK_EQ(n, 1);
	write_text(&w, &f, 0, "other");
	truncate_to(&f, 2);
	CHECK_MEM(list[0].block->data, 5, "first", 5);
	block_unref(list[0].block);
	check_text(&w, &f, 0, "ot");
}

TEST(data_and_holes_are_found_as_lseek_has_them)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = new_file();

	CHECK_EQ(seek_from(&w, &f, 0, false), -ENXIO);
	CHECK_EQ(seek_from(&w, &f, 0, true), -ENXIO);
	write_text(&w, &f, 1000 * BLOCK + 7, "data");
	truncate_to(&f, 2000 * BLOCK);
	for (int round = 0; round < 2; round++) {
		CHECK_EQ(seek_from(&w, &f, 0, true), 0);
		CHECK_EQ(seek_from(&w, &f, 0, false), 1000 * BLOCK);
		CHECK_EQ(seek_from(&w, &f, 1000 * BLOCK + 9, false), 1000 * BLOCK + 9);
		CHECK_EQ(seek_from(&w, &f, 1000 * BLOCK, true), 1001 * BLOCK);
		CHECK_EQ(seek_from(&w, &f, 1001 * BLOCK, false), -ENXIO);
		CHECK_EQ(seek_from(&w, &f, 2000 * BLOCK, true), -ENXIO);
		persist(&w, &f);
	}
}

TEST(full_blocks_come_and_go_without_getting_mixed_up)
{
	CLEANUP(world_close) struct world w = world_open();
	struct test_rng rng = { .s = test_seed() };
	struct file f[8];

	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		f[i] = new_file();
	for (int i = 0; i < 100; i++) {
		const size_t which = test_rand(&rng) % ARRAY_LEN(f);
		const uint64_t len = (1 + test_rand(&rng) % 70) * BLOCK;

		truncate_to(&f[which], test_rand(&rng) % 2 ? 0 : f[which].size / 2);
		write_full(&w, &f[which], 0, len);
		for (size_t k = 0; k < ARRAY_LEN(f); k++)
			if (f[k].size > 0)
				check_filled(&w, &f[k], f[k].size / 3, f[k].size / 3);
	}
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		file_done(&f[i]);
}

#define TAKEN 400 /* blocks: of more slabs than are kept */

TEST(memory_of_blocks_that_nobody_has_is_given_back_when_asked_for)
{
	static void *blocks[TAKEN];
	const size_t slab = 2 << 20, kept = 8;

	pool_trim();
	for (size_t i = 0; i < TAKEN; i++) {
		blocks[i] = pool_take();
		CHECK(blocks[i] != NULL);
	}
	/* The last slab has free slots and blocks in use: it stays, and so do the bytes in it. */
	memset(blocks[TAKEN - 1], 'x', FILE_BLOCK);
	for (size_t i = 0; i < TAKEN - 1; i++)
		pool_give(blocks[i]);
	CHECK_EQ(pool_trim(), kept * slab);
	CHECK_EQ(pool_trim(), 0);
	CHECK_EQ(((char *)blocks[TAKEN - 1])[FILE_BLOCK - 1], 'x');
	pool_give(blocks[TAKEN - 1]);
	CHECK_EQ(pool_trim(), slab);
	CHECK((blocks[0] = pool_take()) != NULL);
	pool_give(blocks[0]);
}

/* Mappings that the kernel may fill with large pages by itself; 0 also where it cannot. */
static size_t count_advised(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[4096];
	size_t n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg");
	if (f)
		fclose(f);
	return n;
}

/* Else it becomes resident again, ten seconds later and ten more, in a process that does nothing. */
TEST(the_kernel_may_not_fill_with_large_pages_what_was_given_back)
{
	static void *blocks[TAKEN], *between[TAKEN];

	for (int round = 0; round < 3; round++) { /* malloc() learns from what is freed */
		for (size_t i = 0; i < TAKEN; i++) {
			CHECK((blocks[i] = pool_take()) != NULL);
			CHECK((between[i] = malloc(FILE_BLOCK)) != NULL);
		}
		for (size_t i = 0; i < TAKEN; i++)
			pool_give(blocks[i]);
		pool_trim();
		CHECK_EQ(count_advised(), 0);
		for (size_t i = 0; i < TAKEN; i++)
			free(between[i]);
	}
}

TEST_MAIN("file")
