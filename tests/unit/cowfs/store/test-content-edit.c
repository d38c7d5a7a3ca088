/*
 * What an edit of a file makes must be what the writer makes of all of it (model-fixture.h).
 */
#include <errno.h>
#include <stdio.h>

#include "tests/unit/cowfs/store/edit-fixture.h"
#include "tests/unit/cowfs/store/model-fixture.h"

/* A number of blocks at, or near, an edge of the format. */
static uint64_t random_blocks(struct test_rng *rng, unsigned levels)
{
	const unsigned level = (unsigned)(test_rand(rng) % (levels + 1));
	const uint64_t edge = (1 + test_rand(rng) % 3) << 9 * level;
	const uint64_t off = test_rand(rng) % 3;

	return test_rand(rng) % 2 ? edge + off : edge - (off < edge ? off : edge);
}

static uint64_t random_size(struct test_rng *rng, unsigned levels)
{
	const uint64_t size = random_blocks(rng, levels) * BLOCK;

	switch (test_rand(rng) % 4) {
	case 0:
		return size + 1;
	case 1:
		return size > 0 ? size - 1 : 0;
	case 2:
		return size + test_rand(rng) % BLOCK;
	default:
		return size;
	}
}

static void random_edit(struct bench *t, struct model *m, struct test_rng *rng, unsigned levels)
{
	CLEANUP(list_done) struct edit_list l = { 0 };
	uint64_t size = m->size, kept, seed = test_rand(rng), block = 0;
	const size_t changes = test_rand(rng) % 8;

	if (test_rand(rng) % 3 > 0)
		size = random_size(rng, levels);
	kept = size < m->size ? size : m->size;
	if (test_rand(rng) % 4 == 0)
		kept = test_rand(rng) % 2 ? test_rand(rng) % (kept + 1) : random_size(rng, levels);
	if (kept > size || kept > m->size)
		kept = size < m->size ? size : m->size;
	model_resize(m, kept, size);
	for (size_t i = 0; i < changes && size > 0; i++) {
		block += test_rand(rng) % 3 ? test_rand(rng) % 3 : random_blocks(rng, levels);
		if (test_rand(rng) % 8 == 0)
			block = blocks_of(size) - 1;
		if (test_rand(rng) % 4 == 0)
			change(m, &l, block, random_blocks(rng, levels), 0);
		else
			change(m, &l, block, 0, seed + i);
	}
	edit_file(t, m, kept, &l);
	check_file(t, m);
}

TEST(any_edit_gives_what_writing_anew_gives)
{
	CLEANUP(bench_done) struct bench t = bench_new("random");
	struct test_rng rng = { .s = test_seed() };

	for (unsigned levels = 0; levels <= RECIPE_LEVEL_MAX; levels++)
		for (int i = 0; i < 3; i++) {
			CLEANUP(model_done) struct model m = { 0 };

			for (int j = 0; j < 30; j++)
				random_edit(&t, &m, &rng, levels);
		}
}

TEST(a_file_may_get_any_size_from_any_size)
{
	static const uint64_t sizes[] = { 0,           1,         BLOCK - 1,
					  BLOCK,       BLOCK + 1, NODE - 1,
					  NODE,        NODE + 1,  TIB,
					  TIB + 1,     NODE << 9, (NODE << 9) + 1,
					  INT64_MAX,   5,         3 * BLOCK + 777,
					  NODE + BLOCK };
	CLEANUP(bench_done) struct bench t = bench_new("sizes");

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (size_t j = 0; j < ARRAY_LEN(sizes); j++) {
			CLEANUP(model_done) struct model m = { 0 };

			resize(&t, &m, sizes[i]);
			if (sizes[i] > 0) {
				rewrite(&t, &m, 0, 1);
				rewrite(&t, &m, blocks_of(sizes[i]) - 1, 2);
			}
			check_file(&t, &m);
			resize(&t, &m, sizes[j]);
			resize(&t, &m, sizes[i]);
		}
}

TEST(a_file_without_holes_stays_one_that_knows_its_data)
{
	static const uint64_t sizes[] = { NODE + 7 * BLOCK + 5,
					  NODE + 7 * BLOCK + 4,
					  NODE + 7 * BLOCK,
					  NODE + 1,
					  NODE,
					  NODE - 1,
					  3 * BLOCK,
					  BLOCK,
					  7,
					  0 };
	CLEANUP(bench_done) struct bench t = bench_new("dense");
	CLEANUP(model_done) struct model m = { 0 };
	const struct content none = { 0 };

	fill_file(&t, &m, NODE + 8 * BLOCK);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const uint64_t before = cache_stats(t.c).loaded;

		count_anew(t.c);
		resize(&t, &m, sizes[i]);
		CHECK_EQ(m.c.data, sizes[i]);
		/* The way to the new end and the block there, none of what goes. */
		CHECK(loads_since(t.c, before) <= (sizes[i] == NODE ? 1 : 3));
	}
	CHECK(content_equal(&m.c, &none));
}

TEST(a_block_that_is_cut_shows_zeros_when_the_file_grows_again)
{
	CLEANUP(bench_done) struct bench t = bench_new("cut");
	CLEANUP(model_done) struct model m = { 0 };
	const struct edit_list none = { 0 };

	fill_file(&t, &m, 3 * BLOCK);
	/* In one step, as a layer does that was truncated and then extended. */
	model_resize(&m, BLOCK + 9, 3 * BLOCK);
	edit_file(&t, &m, BLOCK + 9, &none);
	check_file(&t, &m);
	check_content(&m.c, CONTENT_RECIPE, 3 * BLOCK, 2 * BLOCK);
	/* In two. */
	resize(&t, &m, 4);
	check_content(&m.c, CONTENT_CHUNK, 4, 4);
	resize(&t, &m, BLOCK);
	resize(&t, &m, BLOCK + 1);
	check_content(&m.c, CONTENT_RECIPE, BLOCK + 1, BLOCK);
}

TEST(a_block_that_is_changed_is_not_read_to_be_cut)
{
	CLEANUP(bench_done) struct bench t = bench_new("over");
	CLEANUP(model_done) struct model m = { 0 };
	CLEANUP(list_done) struct edit_list l = { 0 };

	fill_file(&t, &m, BLOCK / 2);
	damage_object(store_path(t.s), OBJECT_CHUNK, &m.c.id);
	model_resize(&m, 77, 90);
	change(&m, &l, 0, 0, 5);
	edit_file(&t, &m, 77, &l);
	check_file(&t, &m);
}

TEST(holes_take_the_place_of_data_and_data_that_of_holes)
{
	CLEANUP(bench_done) struct bench t = bench_new("punch");
	CLEANUP(model_done) struct model m = { 0 };
	const struct content hole = { .size = NODE + BLOCK / 2 };

	fill_file(&t, &m, NODE + BLOCK / 2);
	punch(&t, &m, RECIPE_FANOUT - 1, 2);
	check_file(&t, &m);
	check_content(&m.c, CONTENT_RECIPE, NODE + BLOCK / 2, NODE - BLOCK);
	rewrite(&t, &m, RECIPE_FANOUT, 3);
	check_file(&t, &m);
	punch(&t, &m, 0, 5);
	check_file(&t, &m);
	punch(&t, &m, 0, RECIPE_FANOUT + 1);
	check_file(&t, &m);
	CHECK(content_equal(&m.c, &hole));
	rewrite(&t, &m, 1, 3);
	check_file(&t, &m);
}

TEST(one_changed_block_of_a_sparse_terabyte_costs_a_handful_of_nodes)
{
	static const uint64_t blocks[] = {
		0, 1, 77, RECIPE_FANOUT, TIB / BLOCK / 2, TIB / BLOCK - 1
	};
	CLEANUP(bench_done) struct bench t = bench_new("sparse");
	CLEANUP(model_done) struct model m = { 0 };

	resize(&t, &m, TIB);
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		const uint64_t before = cache_stats(t.c).loaded;

		count_anew(t.c);
		rewrite(&t, &m, blocks[i], i + 1);
		CHECK(loads_since(t.c, before) <= 3);
		CHECK(counted.puts <= 4);
		check_file(&t, &m);
	}
	count_anew(t.c);
	punch(&t, &m, 1, TIB / BLOCK - 2);
	CHECK(counted.puts <= 5);
	check_file(&t, &m);
	check_content(&m.c, CONTENT_RECIPE, TIB, 2 * BLOCK);
}

TEST(counting_the_data_of_a_file_with_holes_reads_the_smaller_part)
{
	const uint64_t per_node = RECIPE_FANOUT, nodes = 64;
	CLEANUP(bench_done) struct bench t = bench_new("count");
	CLEANUP(model_done) struct model m = { 0 };
	uint64_t before;

	resize(&t, &m, nodes * NODE);
	for (uint64_t i = 0; i < nodes; i++)
		model_set(&m, i * per_node + i, i + 1);
	m.c = write_model(t.b, &m);
	bench_commit(&t);

	count_anew(t.c);
	before = cache_stats(t.c).loaded;
	resize(&t, &m, (nodes - 3) * NODE);
	CHECK(loads_since(t.c, before) <= 1 + 3);
	count_anew(t.c);
	before = cache_stats(t.c).loaded;
	resize(&t, &m, 5 * NODE);
	CHECK(loads_since(t.c, before) <= 1 + 5);
	CHECK_EQ(m.c.data, 5 * BLOCK);
}

static void edit_fails(struct bench *t, const struct content *base, uint64_t kept,
		       const struct content_change *list, size_t n, const char *why)
{
	const struct content untouched = { .size = 4711 };
	struct content c = untouched;
	struct err err = { 0 };

	cache_drop(t->c);
	CHECK_EQ(content_edit(t->b, t->c, base, kept, kept > 0 ? kept : 1, list, n, &c, &err),
		 -EBADMSG);
	CHECK_EQ(err.code, -EBADMSG);
	CHECK_HAS(err.msg, why);
	CHECK(content_equal(&c, &untouched));
}

TEST(damage_on_the_way_is_reported_and_damage_elsewhere_does_not_matter)
{
	CLEANUP(bench_done) struct bench t = bench_new("damage");
	CLEANUP(model_done) struct model m = { 0 };
	AUTO_FREE uint8_t *bytes = calloc(1, BLOCK);
	const struct content_change first = { .n = 1, .data = bytes };
	const struct content_change last = { .first = 2 * RECIPE_FANOUT, .n = 1, .data = "ab" };
	AUTO_FREE struct recipe_node *top = malloc(sizeof(*top));
	CLEANUP(buf_done) struct buf encoded = BUF_INIT;
	struct err err = { 0 };
	struct object_id chunk;
	struct content c;

	CHECK(bytes && top);
	resize(&t, &m, 2 * NODE + 2);
	for (uint64_t i = 0; i < 3; i++)
		rewrite(&t, &m, i * RECIPE_FANOUT, i + 1);
	CHECK_OK(store_get(t.s, OBJECT_RECIPE, &m.c.id, &encoded, &err), &err);
	CHECK_OK(recipe_decode(encoded.data, encoded.len, top, &err), &err);
	damage_object(store_path(t.s), OBJECT_RECIPE, &top->id[0]);
	edit_fails(&t, &m.c, m.size, &first, 1, "recipe");
	/* The other nodes are not needed to change this one, nor any chunk. */
	block_bytes(&m.block[1], bytes, BLOCK);
	chunk = object_id_of(store_key(t.s), OBJECT_CHUNK, bytes, BLOCK);
	damage_object(store_path(t.s), OBJECT_CHUNK, &chunk);
	CHECK_OK(content_edit(t.b, t.c, &m.c, m.size, m.size, &last, 1, &c, &err), &err);
	CHECK_EQ(c.data, m.c.data);
	edit_fails(&t, &m.c, NODE + 5, NULL, 0, "chunk");
	damage_remove(store_path(t.s), OBJECT_RECIPE, &m.c.id);
	edit_fails(&t, &m.c, m.size, &last, 1, "recipe");
}

static struct object_id put_node(struct batch *b, unsigned level, unsigned n,
				 const struct object_id *id)
{
	AUTO_FREE struct recipe_node *node = calloc(1, sizeof(*node));
	CLEANUP(buf_done) struct buf encoded = BUF_INIT;

	CHECK(node);
	node->level = level;
	node->n = n;
	for (unsigned i = 0; i < n; i++)
		node->id[i] = *id;
	CHECK_EQ(recipe_encode(node, &encoded), 0);
	return stock_put(b, OBJECT_RECIPE, encoded.data, encoded.len);
}

TEST(content_that_does_not_fit_together_is_damage)
{
	CLEANUP(bench_done) struct bench t = bench_new("misfit");
	AUTO_FREE uint8_t *bytes = calloc(1, BLOCK);
	const struct object_id full = stock_put(t.b, OBJECT_CHUNK, bytes, BLOCK);
	const struct object_id part = stock_put(t.b, OBJECT_CHUNK, bytes, 100);
	const struct content_change list[] = { { .n = 1, .data = bytes } };
	const struct content_change hole[] = { { .n = 1 } };
	struct content c = { .form = CONTENT_RECIPE, .size = 3 * BLOCK, .data = 3 * BLOCK };

	c.id = put_node(t.b, 1, 3, &full);
	bench_commit(&t);
	edit_fails(&t, &c, c.size, list, 1, "has level 1 where 0 belongs");
	c.id = put_node(t.b, 0, 4, &full);
	bench_commit(&t);
	edit_fails(&t, &c, c.size, list, 1, "goes beyond the end of a file of 196608 bytes");
	c.id = put_node(t.b, 0, 3, &part);
	bench_commit(&t);
	edit_fails(&t, &c, BLOCK + 1, NULL, 0, "has 100 bytes where 65536 belong");
	/* More data goes than it is said to have. */
	c.id = put_node(t.b, 0, 3, &full);
	c.data = 7;
	bench_commit(&t);
	edit_fails(&t, &c, c.size, hole, 1, "has not 7 bytes of data");

	c.form = CONTENT_CHUNK;
	edit_fails(&t, &c, 0, NULL, 0, "content of form 1 does not fit 196608 bytes");
}

TEST(memory_that_runs_out_is_reported_and_leaves_nothing_behind)
{
	CLEANUP(bench_done) struct bench t = bench_new("memory");
	CLEANUP(model_done) struct model m = { 0 };
	CLEANUP(list_done) struct edit_list l = { 0 };
	struct content c;
	unsigned failures = 0;

	resize(&t, &m, NODE * 600);
	rewrite(&t, &m, 3, 1);
	rewrite(&t, &m, RECIPE_FANOUT * 599, 2);
	model_resize(&m, 3 * BLOCK + 9, NODE * 3);
	change(&m, &l, 0, 0, 8);
	change(&m, &l, RECIPE_FANOUT, 0, 9);
	for (unsigned n = 1;; n++) {
		struct err err = { 0 };
		int r;

		cache_drop(t.c);
		memory_ran_out = false;
		memory_lasts = n;
		r = content_edit(t.b, t.c, &m.c, 3 * BLOCK + 9, m.size, l.change, l.n, &c, &err);
		memory_lasts = 0;
		if (r == 0)
			break;
		CHECK(memory_ran_out);
		CHECK_EQ(r, -ENOMEM);
		CHECK_EQ(err.code, -ENOMEM);
		failures++;
	}
	CHECK(failures > 8);
	m.c = c;
	bench_commit(&t);
	check_file(&t, &m);
}

TEST_MAIN("content-edit")
