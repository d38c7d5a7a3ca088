#include "cowfs/store/content.h"

#include <errno.h>

#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/content-fixture.h"

TEST(an_empty_file_stores_nothing)
{
	CLEANUP(store_close_p) struct store *s = open_store("empty");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct content c = finish(w), same;

	check_content(&c, CONTENT_HOLE, 0, 0);
	add(w, NULL, 0);
	leave_hole(w, 0);
	same = finish(w);
	CHECK(content_equal(&c, &same));
	same = put(b, NULL, 0);
	CHECK(content_equal(&c, &same));
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks + stock_sizes(s).objects, 0);
	rd = new_reader(s, &c);
	check_read(rd, 0, 10, NULL, 0);
	check_read(rd, 10, 10, NULL, 0);
}

TEST(a_file_that_is_one_hole_stores_nothing_whatever_its_size)
{
	static const uint64_t sizes[] = {
		1, BLOCK - 1, BLOCK, BLOCK + 1, NODE + 1, TIB, INT64_MAX
	};
	static const uint8_t zeros[100];
	CLEANUP(store_close_p) struct store *s = open_store("hole");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	struct err err = { 0 };
	uint64_t found;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
		struct content c;

		leave_hole(w, sizes[i]);
		c = finish(w);
		check_content(&c, CONTENT_HOLE, sizes[i], 0);
		rd = new_reader(s, &c);
		check_read(rd, sizes[i] - 1, 100, zeros, 1);
		CHECK_EQ(content_reader_seek_data(rd, 0, &found, &err), -ENXIO);
		CHECK_OK(content_reader_seek_hole(rd, sizes[i] - 1, &found, &err), &err);
		CHECK_EQ(found, sizes[i] - 1);
	}
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks + stock_sizes(s).objects, 0);
}

TEST(a_file_of_up_to_one_block_is_its_chunk)
{
	static const uint64_t sizes[] = { 1, 100, BLOCK - 1, BLOCK };
	CLEANUP(store_close_p) struct store *s = open_store("chunk");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *bytes = filled(BLOCK);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const struct object_id id =
		    object_id_of(store_key(s), OBJECT_CHUNK, bytes, sizes[i]);
		struct content c;

		add(w, bytes, sizes[i]);
		c = finish(w);
		check_content(&c, CONTENT_CHUNK, sizes[i], sizes[i]);
		CHECK(object_id_equal(&c.id, &id));
	}
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, ARRAY_LEN(sizes));
	CHECK_EQ(stock_sizes(s).objects, 0);
}

TEST(a_file_over_one_block_lists_its_chunks)
{
	CLEANUP(store_close_p) struct store *s = open_store("recipe");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(buf_done) struct buf encoded = BUF_INIT;
	AUTO_FREE uint8_t *bytes = filled(2 * BLOCK + 5);
	struct content c = put(b, bytes, 2 * BLOCK + 5);
	struct recipe_node node;
	struct err err = { 0 };

	check_content(&c, CONTENT_RECIPE, 2 * BLOCK + 5, 2 * BLOCK + 5);
	stock_commit(b);
	CHECK_OK(store_get(s, OBJECT_RECIPE, &c.id, &encoded, &err), &err);
	CHECK_OK(recipe_decode(encoded.data, encoded.len, &node, &err), &err);
	CHECK_EQ(node.level, 0);
	CHECK_EQ(node.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct object_id id =
		    object_id_of(store_key(s), OBJECT_CHUNK, bytes + i * BLOCK, i < 2 ? BLOCK : 5);

		CHECK(object_id_equal(&node.id[i], &id));
	}
}

TEST(a_file_put_whole_is_the_same_as_one_written_in_pieces)
{
	static const uint64_t sizes[] = {
		1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1, 9 * BLOCK + 7,
	};
	CLEANUP(store_close_p) struct store *s = open_store("whole");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *bytes = filled(9 * BLOCK + 7);

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const struct content whole = put(b, bytes, sizes[i]);
		struct content pieces;

		for (uint64_t off = 0; off < sizes[i]; off += 4093)
			add(w, bytes + off, sizes[i] - off < 4093 ? sizes[i] - off : 4093);
		pieces = finish(w);
		CHECK(content_equal(&whole, &pieces));
	}
}

TEST(zeros_that_were_written_are_data_and_blocks_that_were_skipped_are_holes)
{
	CLEANUP(store_close_p) struct store *s = open_store("zeros");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *zeros = calloc(3, BLOCK);
	struct content written, skipped;

	CHECK(zeros);
	written = put(b, zeros, 3 * BLOCK);
	check_content(&written, CONTENT_RECIPE, 3 * BLOCK, 3 * BLOCK);
	add(w, zeros, BLOCK);
	leave_hole(w, BLOCK);
	add(w, zeros, BLOCK);
	skipped = finish(w);
	check_content(&skipped, CONTENT_RECIPE, 3 * BLOCK, 2 * BLOCK);
	CHECK(!content_equal(&written, &skipped));
}

TEST(a_block_that_was_skipped_in_part_is_stored_as_zeros)
{
	static const struct {
		uint64_t before, hole, after;
	} cases[] = {
		{ 0, 10, 10 },           { 10, 10, 0 },
		{ 10, 10, 10 },          { 0, BLOCK - 1, 1 },
		{ 1, BLOCK - 1, 0 },     { 1, BLOCK, 1 },
		{ BLOCK, 10, 1 },        { BLOCK + 5, BLOCK - 6, 1 },
		{ 1, 2 * BLOCK - 2, 1 },
	};
	CLEANUP(store_close_p) struct store *s = open_store("part");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *bytes = filled(4 * BLOCK), *flat = malloc(4 * BLOCK);

	CHECK(flat);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint64_t size = cases[i].before + cases[i].hole + cases[i].after;
		struct content with_hole, without;

		memcpy(flat, bytes, size);
		memset(flat + cases[i].before, 0, cases[i].hole);
		add(w, flat, cases[i].before);
		leave_hole(w, cases[i].hole);
		add(w, flat + cases[i].before + cases[i].hole, cases[i].after);
		with_hole = finish(w);
		without = put(b, flat, size);
		CHECK(content_equal(&with_hole, &without));
	}
}

TEST(a_writer_takes_the_next_file_as_new)
{
	CLEANUP(store_close_p) struct store *s = open_store("next");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	struct content first, second;

	add(w, "abc", 3);
	first = finish(w);
	leave_hole(w, NODE + 1);
	add(w, "abc", 3);
	leave_hole(w, TIB);
	finish(w);
	add(w, "abc", 3);
	second = finish(w);
	CHECK(content_equal(&first, &second));
}

TEST(a_file_ends_where_an_off_t_does)
{
	CLEANUP(store_close_p) struct store *s = open_store("end");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct err err = { 0 };
	struct content c;
	uint64_t found;

	add(w, "a", 1);
	CHECK_EQ(content_writer_skip(w, INT64_MAX, &err), -EFBIG);
	CHECK_EQ(content_writer_skip(w, UINT64_MAX, &err), -EFBIG);
	leave_hole(w, INT64_MAX - 2);
	CHECK_EQ(content_writer_add(w, "zz", 2, &err), -EFBIG);
	CHECK_HAS(err.msg, "9223372036854775807");
	add(w, "z", 1);
	CHECK_EQ(content_writer_add(w, "z", 1, &err), -EFBIG);
	CHECK_EQ(content_writer_skip(w, 1, &err), -EFBIG);
	c = finish(w);
	check_content(&c, CONTENT_RECIPE, INT64_MAX, 2 * BLOCK - 1);
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, 2);
	CHECK_EQ(stock_sizes(s).objects, 2 * RECIPE_LEVEL_MAX + 1);

	rd = new_reader(s, &c);
	check_read(rd, INT64_MAX - 3, 100, (const uint8_t *)"\0\0z", 3);
	check_read(rd, 0, 2, (const uint8_t *)"a", 2);
	CHECK_OK(content_reader_seek_data(rd, BLOCK, &found, &err), &err);
	CHECK_EQ(found, INT64_MAX / BLOCK * BLOCK);
	CHECK_OK(content_reader_seek_hole(rd, found, &found, &err), &err);
	CHECK_EQ(found, INT64_MAX);
}

TEST(a_sparse_terabyte_costs_a_handful_of_objects)
{
	CLEANUP(store_close_p) struct store *s = open_store("sparse");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct err err = { 0 };
	struct content c;
	uint64_t found;

	leave_hole(w, TIB / 2);
	add(w, "middle", 6);
	leave_hole(w, TIB / 2 - 6);
	c = finish(w);
	check_content(&c, CONTENT_RECIPE, TIB, BLOCK);
	stock_commit(b);
	CHECK_EQ(stock_sizes(s).chunks, 1);
	CHECK_EQ(stock_sizes(s).objects, 3);

	rd = new_reader(s, &c);
	check_read(rd, TIB / 2, 6, (const uint8_t *)"middle", 6);
	CHECK_OK(content_reader_seek_data(rd, 0, &found, &err), &err);
	CHECK_EQ(found, TIB / 2);
	CHECK_EQ(content_reader_seek_data(rd, TIB / 2 + BLOCK, &found, &err), -ENXIO);
	CHECK_OK(content_reader_seek_hole(rd, TIB / 2, &found, &err), &err);
	CHECK_EQ(found, TIB / 2 + BLOCK);
}

/* Blocks that differ from each other but pack to nothing; `changed` has a mark. */
static struct content write_large(struct batch *b, uint64_t blocks, uint64_t changed)
{
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *block = calloc(1, BLOCK);

	CHECK(block);
	for (uint64_t i = 0; i < blocks; i++) {
		memcpy(block, &i, sizeof(i));
		block[BLOCK - 1] = i == changed;
		add(w, block, BLOCK);
	}
	return finish(w);
}

TEST(one_changed_block_of_a_large_file_adds_one_chunk_and_one_node_per_level)
{
	const uint64_t blocks = ((uint64_t)100 << 20) / BLOCK;
	CLEANUP(store_close_p) struct store *s = open_store("large");
	struct store_sizes before, after;

	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

		write_large(b, blocks, UINT64_MAX);
		stock_commit(b);
	}
	before = stock_sizes(s);
	CHECK_EQ(before.chunks, blocks);
	CHECK_EQ(before.objects, (blocks + RECIPE_FANOUT - 1) / RECIPE_FANOUT + 1);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

		write_large(b, blocks, 777);
		stock_commit(b);
	}
	after = stock_sizes(s);
	CHECK_EQ(after.chunks, before.chunks + 1);
	CHECK_EQ(after.objects, before.objects + 2);
}

TEST(reading_on_within_a_block_asks_the_store_only_once)
{
	CLEANUP(store_close_p) struct store *s = open_store("once");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE uint8_t *bytes = filled(2 * BLOCK);
	struct content c = put(b, bytes, 2 * BLOCK);

	stock_commit(b);
	rd = new_reader(s, &c);
	check_read(rd, 0, 4096, bytes, 4096);
	damage_sql(store_path(s), "chunks.db", "DELETE FROM chunk");
	damage_sql(store_path(s), "meta.db", "DELETE FROM object");
	for (uint64_t off = 0; off < BLOCK; off += 4096)
		check_read(rd, off, 4096, bytes + off, 4096);
	check_read_fails(rd, BLOCK, -EBADMSG, "chunk");
}

TEST_MAIN("content")
