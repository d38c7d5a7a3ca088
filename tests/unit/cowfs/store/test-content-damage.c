#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/lib/damage.h"
#include "tests/unit/cowfs/store/content-fixture.h"

TEST(a_damaged_chunk_is_reported_and_the_others_can_still_be_read)
{
	CLEANUP(store_close_p) struct store *s = open_store("bad-chunk");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE uint8_t *bytes = filled(3 * BLOCK), *all = malloc(3 * BLOCK);
	struct content c = put(b, bytes, 3 * BLOCK);
	struct err err = { 0 };
	struct object_id id;

	CHECK(all);
	stock_commit(b);
	id = object_id_of(store_key(s), OBJECT_CHUNK, bytes + BLOCK, BLOCK);
	damage_object(store_path(s), OBJECT_CHUNK, &id);
	rd = new_reader(s, &c);
	check_read_fails(rd, BLOCK, -EBADMSG, "offset 65536");
	check_read_fails(rd, 2 * BLOCK - 100, -EBADMSG, "chunk");
	check_read(rd, 0, BLOCK, bytes, BLOCK);
	check_read(rd, 2 * BLOCK, BLOCK, bytes + 2 * BLOCK, BLOCK);
	CHECK_EQ(content_reader_read(rd, 0, all, 3 * BLOCK, &err), -EBADMSG);
}

TEST(a_damaged_node_is_reported_and_gives_no_data)
{
	CLEANUP(store_close_p) struct store *s = open_store("bad-node");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	AUTO_FREE uint8_t *bytes = filled(3 * BLOCK);
	struct content c = put(b, bytes, 3 * BLOCK);
	struct err err = { 0 };
	uint64_t found;

	stock_commit(b);
	damage_object(store_path(s), OBJECT_RECIPE, &c.id);
	rd = new_reader(s, &c);
	check_read_fails(rd, 0, -EBADMSG, "recipe");
	check_read_fails(rd, 2 * BLOCK, -EBADMSG, "recipe");
	CHECK_EQ(content_reader_seek_data(rd, 0, &found, &err), -EBADMSG);
	CHECK_HAS(err.msg, "recipe");
}

/* A chunk whose bytes are those of a filled file at `off`. */
static struct object_id put_chunk(struct batch *b, uint64_t off, uint64_t len)
{
	AUTO_FREE uint8_t *bytes = filled(len);

	fill(bytes, off, len);
	return stock_put(b, OBJECT_CHUNK, bytes, (size_t)len);
}

static struct object_id put_node(struct batch *b, const struct recipe_node *node)
{
	CLEANUP(buf_done) struct buf encoded = BUF_INIT;

	CHECK_EQ(recipe_encode(node, &encoded), 0);
	return stock_put(b, OBJECT_RECIPE, encoded.data, encoded.len);
}

static struct content recipe_content(struct object_id id, uint64_t size)
{
	return (struct content){ .form = CONTENT_RECIPE, .id = id, .size = size, .data = size / 2 };
}

TEST(a_missing_chunk_or_node_is_reported_by_its_id)
{
	static const struct object_id absent = { { 0xab, 0xcd } };
	CLEANUP(store_close_p) struct store *s = open_store("missing");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL, *top = NULL, *below = NULL;
	AUTO_FREE uint8_t *bytes = filled(BLOCK);
	struct recipe_node node = { .level = 0, .n = 2, .id = { put_chunk(b, 0, BLOCK), absent } };
	struct recipe_node above = { .level = 1, .n = 2, .id = { put_node(b, &node), absent } };
	struct err err = { 0 };
	struct content c;
	uint64_t found;

	c = recipe_content(above.id[0], 2 * BLOCK);
	rd = new_reader(s, &c);
	c = recipe_content(put_node(b, &above), 2 * NODE);
	below = new_reader(s, &c);
	c = recipe_content(absent, 2 * BLOCK);
	top = new_reader(s, &c);
	stock_commit(b);

	check_read(rd, 0, 100, bytes, 100);
	check_read_fails(rd, BLOCK, -EBADMSG, "chunk abcd0000");
	check_read_fails(top, 0, -EBADMSG, "recipe abcd0000");
	check_read(below, 0, 100, bytes, 100);
	check_read_fails(below, NODE, -EBADMSG, "recipe abcd0000");
	CHECK_EQ(content_reader_seek_data(below, NODE, &found, &err), -EBADMSG);
	CHECK_HAS(err.msg, "recipe abcd0000");
}

TEST(a_chunk_of_the_wrong_length_is_refused)
{
	CLEANUP(store_close_p) struct store *s = open_store("length");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL, *one = NULL;
	AUTO_FREE uint8_t *bytes = filled(BLOCK);
	struct recipe_node node = { .level = 0, .n = 4, .id = { put_chunk(b, 0, BLOCK) } };
	struct content c;

	node.id[1] = put_chunk(b, BLOCK, BLOCK - 1);
	node.id[2] = put_chunk(b, 0, 0);
	node.id[3] = put_chunk(b, 3 * BLOCK, 1001);
	c = recipe_content(put_node(b, &node), 3 * BLOCK + 1000);
	rd = new_reader(s, &c);
	c = (struct content){ .form = CONTENT_CHUNK, .id = node.id[3], .size = 1000, .data = 1000 };
	one = new_reader(s, &c);
	stock_commit(b);

	check_read(rd, 0, 100, bytes, 100);
	check_read_fails(rd, BLOCK, -EBADMSG, "has 65535 bytes where 65536 belong");
	check_read_fails(rd, BLOCK, -EBADMSG, "has 65535 bytes where 65536 belong");
	check_read_fails(rd, 2 * BLOCK, -EBADMSG, "has 0 bytes where 65536 belong");
	check_read_fails(rd, 3 * BLOCK, -EBADMSG, "has 1001 bytes where 1000 belong");
	check_read(rd, 100, 100, bytes + 100, 100);
	check_read_fails(one, 0, -EBADMSG, "has 1001 bytes where 1000 belong");
}

TEST(a_node_of_the_wrong_level_is_refused_and_the_others_can_still_be_read)
{
	CLEANUP(store_close_p) struct store *s = open_store("level");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *low = NULL, *high = NULL, *mid = NULL;
	AUTO_FREE uint8_t *bytes = filled(2 * BLOCK);
	struct recipe_node node = { .level = 0, .n = 2, .id = { put_chunk(b, 0, BLOCK) } };
	struct recipe_node above = { .level = 1, .n = 2 };
	struct content c;

	node.id[1] = put_chunk(b, BLOCK, BLOCK);
	above.id[0] = put_node(b, &node);
	node.level = 1;
	node.n = 1;
	above.id[1] = put_node(b, &node);

	c = recipe_content(above.id[1], 2 * BLOCK);
	high = new_reader(s, &c);
	c = recipe_content(above.id[0], 2 * NODE);
	low = new_reader(s, &c);
	c = recipe_content(put_node(b, &above), 2 * NODE);
	mid = new_reader(s, &c);
	stock_commit(b);

	check_read_fails(high, 0, -EBADMSG, "has level 1 where 0 belongs");
	check_read_fails(low, 0, -EBADMSG, "has level 0 where 1 belongs");
	check_read(mid, 0, 100, bytes, 100);
	check_read_fails(mid, NODE, -EBADMSG, "has level 1 where 0 belongs");
	check_read_fails(mid, NODE + BLOCK, -EBADMSG, "has level 1 where 0 belongs");
	check_read(mid, BLOCK, 100, bytes + BLOCK, 100);
}

TEST(a_node_that_goes_beyond_the_end_of_the_file_is_refused)
{
	CLEANUP(store_close_p) struct store *s = open_store("beyond");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	struct recipe_node node = { .level = 0, .n = 3, .id = { put_chunk(b, 0, BLOCK) } };
	struct recipe_node above = { .level = 1, .n = 2 };
	struct content fits, beyond, below;

	node.id[1] = node.id[2] = node.id[0];
	above.id[0] = above.id[1] = put_node(b, &node);
	fits = recipe_content(above.id[0], 2 * BLOCK + 1);
	beyond = recipe_content(above.id[0], 2 * BLOCK);
	below = recipe_content(put_node(b, &above), NODE + 2 * BLOCK);
	stock_commit(b);
	{
		CLEANUP(content_reader_free_p) struct content_reader *rd = new_reader(s, &fits);
		AUTO_FREE uint8_t *bytes = filled(BLOCK);

		check_read(rd, BLOCK, 100, bytes, 100);
	}
	{
		CLEANUP(content_reader_free_p) struct content_reader *rd = new_reader(s, &beyond);

		check_read_fails(rd, 0, -EBADMSG, "goes beyond the end of a file of 131072 bytes");
	}
	{
		CLEANUP(content_reader_free_p) struct content_reader *rd = new_reader(s, &below);
		AUTO_FREE uint8_t *bytes = filled(BLOCK);

		check_read(rd, BLOCK, 100, bytes, 100);
		check_read_fails(rd, NODE, -EBADMSG, "goes beyond the end of a file");
	}
}

TEST(an_object_that_is_no_recipe_is_refused)
{
	CLEANUP(store_close_p) struct store *s = open_store("no-recipe");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_reader_free_p) struct content_reader *rd = NULL;
	struct content c = recipe_content(stock_put(b, OBJECT_RECIPE, "nonsense", 8), 2 * BLOCK);

	rd = new_reader(s, &c);
	stock_commit(b);
	check_read_fails(rd, 0, -EBADMSG, "are no recipe");
}

TEST(a_content_whose_parts_do_not_fit_each_other_is_refused)
{
	static const struct object_id id = { { 1 } };
	static const struct content cases[] = {
		{ .form = CONTENT_HOLE, .id = { { 1 } }, .size = 5 },
		{ .form = CONTENT_HOLE, .size = (uint64_t)INT64_MAX + 1 },
		{ .form = CONTENT_CHUNK, .size = 5 },
		{ .form = CONTENT_CHUNK, .id = { { 1 } }, .size = 0 },
		{ .form = CONTENT_CHUNK, .id = { { 1 } }, .size = BLOCK + 1 },
		{ .form = CONTENT_RECIPE, .size = 2 * BLOCK },
		{ .form = CONTENT_RECIPE, .id = { { 1 } }, .size = BLOCK },
		{ .form = CONTENT_RECIPE, .id = { { 1 } }, .size = UINT64_MAX },
		{ .form = (enum content_form)4, .id = { { 1 } }, .size = 5 },
	};
	CLEANUP(store_close_p) struct store *s = open_store("fit");
	const struct content good = { .form = CONTENT_CHUNK, .id = id, .size = 1, .data = 1 };
	CLEANUP(content_reader_free_p) struct content_reader *fits = NULL;

	fits = new_reader(s, &good);
	CHECK(fits);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct content_reader *rd = NULL;
		struct err err = { 0 };

		CHECK_EQ(content_reader_new(s, &cases[i], &rd, &err), -EBADMSG);
		CHECK_HAS(err.msg, "does not fit");
		CHECK(!rd);
	}
}

/* A full disk, played by a limit on the size of files. */
TEST(a_file_with_a_piece_that_could_not_be_stored_is_never_finished_but_the_next_one_is)
{
	CLEANUP(store_close_p) struct store *s = open_store("full");
	CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
	CLEANUP(content_writer_free_p) struct content_writer *w = new_writer(b);
	AUTO_FREE uint8_t *bytes = filled(BATCH_PENDING_MAX + 2 * BLOCK);
	struct content c = { .size = 77 }, whole;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	struct rlimit before, tight;
	struct err err = { 0 };
	int failed = 0;

	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	tight = (struct rlimit){ .rlim_cur = 1 << 20, .rlim_max = before.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
	for (size_t off = 0; off < BATCH_PENDING_MAX + BLOCK && failed == 0; off += 50000)
		failed = content_writer_add(w, bytes + off, 50000, &err);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, handler);

	CHECK(failed < 0);
	CHECK_EQ(content_writer_add(w, "x", 1, &err), failed);
	CHECK_HAS(err.msg, "earlier part");
	CHECK_EQ(content_writer_skip(w, 1, &err), failed);
	CHECK_EQ(content_writer_finish(w, &c, &err), failed);
	CHECK_EQ(c.size, 77);

	add(w, bytes, 2 * BLOCK + 5);
	c = finish(w);
	whole = put(b, bytes, 2 * BLOCK + 5);
	CHECK(content_equal(&c, &whole));
}

TEST_MAIN("content-damage")
