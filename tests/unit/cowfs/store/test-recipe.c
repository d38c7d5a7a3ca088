#include "cowfs/store/recipe.h"

#include <errno.h>

#include "tests/lib/test.h"

#define BLOCK  ((uint64_t)CHUNK_SIZE_MAX)
#define HEADER 8

/* A node whose ids differ from each other, with holes at every `hole`-th slot but the last. */
static struct recipe_node some_node(unsigned level, unsigned n, unsigned hole)
{
	struct recipe_node node = { .level = level, .n = n };

	for (unsigned i = 0; i < n; i++) {
		if (hole > 0 && i % hole == 0 && i + 1 < n)
			continue;
		memset(node.id[i].b, 0x40 + (int)level, OBJECT_ID_SIZE);
		node.id[i].b[0] = (uint8_t)i;
		node.id[i].b[1] = (uint8_t)(i >> 8);
	}
	return node;
}

static void check_same(const struct recipe_node *a, const struct recipe_node *b)
{
	CHECK_EQ(a->level, b->level);
	CHECK_EQ(a->n, b->n);
	CHECK_MEM(a->id, a->n * sizeof(a->id[0]), b->id, b->n * sizeof(b->id[0]));
}

static void check_refused(const void *data, size_t len, const char *why)
{
	static const struct recipe_node before = { .level = 77, .n = 77 };
	struct recipe_view view = { .level = 77, .n = 77 };
	struct recipe_node node = before;
	struct err err = { 0 };

	CHECK_EQ(recipe_decode(data, len, &node, &err), -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_HAS(err.msg, why);
	CHECK_MEM(&node, sizeof(node), &before, sizeof(before));

	err = (struct err){ 0 };
	CHECK_EQ(recipe_view(data, len, &view, &err), -EBADMSG);
	CHECK_HAS(err.msg, why);
	CHECK_EQ(view.n, 77);
}

TEST(the_level_rises_exactly_where_the_level_below_is_full)
{
	uint64_t full = BLOCK * RECIPE_FANOUT;

	CHECK_EQ(recipe_level(BLOCK + 1), 0);
	for (unsigned level = 0; level < RECIPE_LEVEL_MAX; level++) {
		CHECK_EQ(recipe_level(full), level);
		CHECK_EQ(recipe_level(full + 1), level + 1);
		full *= RECIPE_FANOUT;
	}
	CHECK_EQ(recipe_level(INT64_MAX), RECIPE_LEVEL_MAX);
	CHECK_EQ(recipe_level(UINT64_MAX), RECIPE_LEVEL_MAX);
}

TEST(a_slot_covers_what_a_full_node_of_the_level_below_covers)
{
	CHECK_EQ(recipe_slot_span(0), BLOCK);
	for (unsigned level = 1; level <= RECIPE_LEVEL_MAX; level++)
		CHECK_EQ(recipe_slot_span(level), recipe_slot_span(level - 1) * RECIPE_FANOUT);
}

TEST(node_and_slot_lead_back_to_the_offset)
{
	struct test_rng rng = { .s = test_seed() };

	for (int i = 0; i < 10000; i++) {
		const uint64_t off = test_rand(&rng) >> (1 + test_rand(&rng) % 60);

		for (unsigned level = 0; level <= RECIPE_LEVEL_MAX; level++) {
			const uint64_t span = recipe_slot_span(level);
			const unsigned slot = recipe_slot_number(level, off);
			uint64_t start;

			CHECK(slot < RECIPE_FANOUT);
			start = (recipe_node_number(level, off) * RECIPE_FANOUT + slot) * span;
			CHECK(start <= off && off - start < span);
		}
	}
}

TEST(the_top_node_of_a_file_is_the_first_of_its_level)
{
	static const uint64_t sizes[] = { BLOCK + 1,     BLOCK << 9,  (BLOCK << 9) + 1,
					  BLOCK << 18,   BLOCK << 27, (BLOCK << 27) + 1,
					  BLOCK << 36,   BLOCK << 45, (BLOCK << 45) + 1,
					  INT64_MAX - 1, INT64_MAX };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		CHECK_EQ(recipe_node_number(recipe_level(sizes[i]), sizes[i] - 1), 0);
}

TEST(a_node_is_written_byte_for_byte_as_documented)
{
	static const uint8_t want[HEADER + 3 * OBJECT_ID_SIZE] = {
		'R',
		1,
		4,
		0,
		3,
		0,
		0,
		0,
		[HEADER] = 0xa1,
		[HEADER + 15] = 0xa2,
		[HEADER + 32] = 0xc1,
		[HEADER + 47] = 0xc2,
	};
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct recipe_node node = { .level = 4, .n = 3 };

	node.id[0].b[0] = 0xa1;
	node.id[0].b[15] = 0xa2;
	node.id[2].b[0] = 0xc1;
	node.id[2].b[15] = 0xc2;
	CHECK_EQ(recipe_encode(&node, &out), 0);
	CHECK_MEM(out.data, out.len, want, sizeof(want));
}

TEST(encoding_replaces_what_the_buffer_held)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct recipe_node node = some_node(0, 1, 0), back;

	CHECK_EQ(buf_append_str(&out, "something else"), 0);
	CHECK_EQ(recipe_encode(&node, &out), 0);
	CHECK_EQ(recipe_decode(out.data, out.len, &back, NULL), 0);
	check_same(&back, &node);
}

TEST(what_was_encoded_decodes_to_the_same_node)
{
	static const unsigned counts[] = { 1, 2, 3, 255, 256, 511, RECIPE_FANOUT };
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	for (unsigned level = 0; level <= RECIPE_LEVEL_MAX; level++) {
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			const struct recipe_node node = some_node(level, counts[i], 3);
			struct recipe_node back;

			CHECK_EQ(recipe_encode(&node, &out), 0);
			CHECK_EQ(out.len, HEADER + counts[i] * OBJECT_ID_SIZE);
			CHECK_OK(recipe_decode(out.data, out.len, &back, &err), &err);
			check_same(&back, &node);
		}
	}
}

TEST(a_view_names_what_the_node_names_and_holes_behind_it)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct recipe_node node = some_node(3, 100, 7);
	struct recipe_view view;
	struct err err = { 0 };

	CHECK_EQ(recipe_encode(&node, &out), 0);
	CHECK_OK(recipe_view(out.data, out.len, &view, &err), &err);
	CHECK_EQ(view.level, 3);
	CHECK_EQ(view.n, 100);
	for (unsigned slot = 0; slot < RECIPE_FANOUT; slot++) {
		const struct object_id id = recipe_view_id(&view, slot);

		CHECK(object_id_equal(&id, &node.id[slot]));
		CHECK(slot < 100 || object_id_is_zero(&id));
	}
}

TEST(a_node_cut_off_or_lengthened_anywhere_is_refused)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct recipe_node node = some_node(1, 5, 2);

	CHECK_EQ(recipe_encode(&node, &out), 0);
	for (size_t len = 0; len < out.len; len++) {
		/* A copy of its own, so that a sanitizer sees a read beyond the end. */
		AUTO_FREE uint8_t *cut = malloc(len > 0 ? len : 1);

		CHECK(cut);
		memcpy(cut, out.data, len);
		check_refused(cut, len, len < HEADER ? "no recipe" : "5 slots");
	}
	for (size_t more = 1; more <= 2 * OBJECT_ID_SIZE; more++) {
		CHECK_EQ(buf_append_u8(&out, 0x11), 0);
		check_refused(out.data, out.len, "5 slots");
	}
}

TEST(a_header_that_no_writer_writes_is_refused)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *why;
	} cases[] = {
		{ 0, 'X', "no recipe" }, { 1, 0, "version 0" },   { 1, 2, "version 2" },
		{ 2, 6, "level 6" },     { 2, 255, "level 255" }, { 3, 1, "no recipe" },
		{ 4, 0, "0 slots" },     { 4, 1, "1 slots" },     { 4, 3, "3 slots" },
		{ 5, 2, "514 slots" },   { 5, 4, "1026 slots" },  { 7, 0x80, "slots" },
	};
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct recipe_node node = some_node(2, 2, 0);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_EQ(recipe_encode(&node, &out), 0);
		out.data[cases[i].at] = cases[i].value;
		check_refused(out.data, out.len, cases[i].why);
	}
}

TEST(a_node_that_ends_in_a_hole_is_refused)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct recipe_node node = some_node(0, 4, 0);

	CHECK_EQ(recipe_encode(&node, &out), 0);
	memset(out.data + out.len - OBJECT_ID_SIZE, 0, OBJECT_ID_SIZE);
	check_refused(out.data, out.len, "ends in a hole");
}

TEST(more_slots_than_the_fan_out_are_refused_even_if_the_length_fits)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	const struct recipe_node node = some_node(0, RECIPE_FANOUT, 0);

	CHECK_EQ(recipe_encode(&node, &out), 0);
	CHECK_EQ(buf_append(&out, node.id[1].b, OBJECT_ID_SIZE), 0);
	out.data[4] = 1; /* 513 */
	check_refused(out.data, out.len, "513 slots");
}

/* So two different byte strings never mean the same node. */
TEST(whatever_decodes_is_encoded_to_the_same_bytes)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT, again = BUF_INIT;
	const struct recipe_node node = some_node(1, 3, 2);
	size_t accepted = 0;

	CHECK_EQ(recipe_encode(&node, &out), 0);
	for (size_t bit = 0; bit < 8 * out.len; bit++) {
		struct recipe_node back;

		out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (recipe_decode(out.data, out.len, &back, NULL) == 0) {
			CHECK_EQ(recipe_encode(&back, &again), 0);
			CHECK_MEM(again.data, again.len, out.data, out.len);
			accepted++;
		}
		out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* Every bit of an id, and those of the level that leave it in bounds. */
	CHECK_EQ(accepted, 8 * 3 * OBJECT_ID_SIZE + 3);
}

TEST_MAIN("recipe")
