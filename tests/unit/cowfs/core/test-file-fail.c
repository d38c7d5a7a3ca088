#include "tests/unit/cowfs/core/file-fixture.h"

/* --- memory that runs out ---------------------------------------------------------------- */

static int allocations_left = -1; /* -1: no end */

static bool out_of_memory(void)
{
	if (allocations_left < 0)
		return false;
	if (allocations_left == 0)
		return true;
	allocations_left--;
	return false;
}

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
	return out_of_memory() ? NULL : __real_malloc(n);
}

void *__wrap_realloc(void *p, size_t n)
{
	return out_of_memory() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return out_of_memory() ? NULL : __real_reallocarray(p, n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return out_of_memory() ? NULL : __real_aligned_alloc(align, n);
}

/* --- no memory, and damage ---------------------------------------------------------------- */

/* What every way to look underneath answers, once all it needs is in memory. */
static void check_damaged(struct world *w, struct file *f, uint64_t off)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	CLEANUP(file_done) struct file frozen = { 0 };
	CLEANUP(batch_end_p) struct batch *b = stock_begin(w->s);
	const uint64_t memory = file_memory(f);
	struct err err = { 0 };
	struct need need;
	struct content c;
	int64_t grown;
	int r;

	write_text(w, f, off + 100, "known");
	while (r = file_write(f, w->c, off + 900, "x", 1, &grown, &need), again(w, &h, r, &need))
		;
	CHECK_EQ(r, -EBADMSG);
	CHECK(file_memory(f) > memory);
	frozen = freeze(f);
	CHECK_EQ(file_store(&frozen, b, w->c, &c, &err), -EBADMSG);
	CHECK(err.msg[0]);
}

static int try_map(struct world *w, struct file *f, uint64_t off)
{
	CLEANUP(held_done) struct held h = { .n = 0 };
	struct piece list[FILE_PIECES(10)];
	struct need need;
	size_t n;
	int r;

	while (r = file_map(f, w->c, off, 10, list, &n, &need), again(w, &h, r, &need))
		;
	return r;
}

static struct content put_node(struct world *w, const struct recipe_node *node, uint64_t size)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(w->s);
	CLEANUP(buf_done) struct buf bytes = BUF_INIT;
	struct content c = { .form = CONTENT_RECIPE, .size = size, .data = BLOCK };

	CHECK_EQ(recipe_encode(node, &bytes), 0);
	c.id = stock_put(b, OBJECT_RECIPE, bytes.data, bytes.len);
	stock_commit(b);
	return c;
}

TEST(a_node_of_the_wrong_level_is_damage)
{
	CLEANUP(world_close) struct world w = world_open();
	const struct recipe_node node = { .level = 1, .n = 1, .id[0].b[0] = 1 };
	const struct content c = put_node(&w, &node, 2 * BLOCK);
	CLEANUP(file_done) struct file f;

	file_init(&f, &c);
	CHECK_EQ(try_map(&w, &f, 0), -EBADMSG);
	CHECK_EQ(seek_from(&w, &f, 0, false), -EBADMSG);
	check_damaged(&w, &f, 0);
}

TEST(a_node_that_goes_beyond_the_end_is_damage)
{
	CLEANUP(world_close) struct world w = world_open();
	const struct recipe_node node = { .level = 0, .n = 3, .id[2].b[0] = 1 };
	const struct content c = put_node(&w, &node, 2 * BLOCK);
	CLEANUP(file_done) struct file f;

	file_init(&f, &c);
	CHECK_EQ(try_map(&w, &f, 0), -EBADMSG);
	CHECK_EQ(seek_from(&w, &f, 0, true), -EBADMSG);
	check_damaged(&w, &f, BLOCK);
}

TEST(a_chunk_of_the_wrong_length_is_damage)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2000);
	struct piece list[FILE_PIECES(10)];
	struct need need;
	size_t n;

	f.base.size = f.base.data = f.kept = f.size = 2001;
	CHECK_EQ(file_map(&f, w.c, 0, 10, list, &n, &need), 0);
	CHECK_EQ(list[0].chunk_len, 2001); /* for the reader to find out */
	check_damaged(&w, &f, 0);
}

TEST(a_content_that_cannot_be_is_damage)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file f = stored_file(&w, 2000);

	f.base.form = CONTENT_RECIPE;
	CHECK_EQ(try_map(&w, &f, 0), -EBADMSG);
	CHECK_EQ(seek_from(&w, &f, 0, false), -EBADMSG);
	check_damaged(&w, &f, 0);
}

/* A file in which a write of ten blocks meets everything there can be. */
static struct file mixed_file(struct world *w, struct file *ret_frozen)
{
	struct file f = stored_file(w, 4 * BLOCK);

	write_text(w, &f, 10, "x");
	write_text(w, &f, 2 * BLOCK, "y");
	punch(w, &f, BLOCK, BLOCK);
	*ret_frozen = freeze(&f);
	write_text(w, &f, 3 * BLOCK, "z");
	return f;
}

TEST(when_memory_runs_out_no_byte_has_changed)
{
	CLEANUP(world_close) struct world w = world_open();
	AUTO_FREE uint8_t *bytes = calloc(1, 30 * BLOCK), *before = malloc(4 * BLOCK);
	struct need need;
	int64_t grown;
	int r = -ENOMEM, failures = 0;

	for (int n = 0; r == -ENOMEM; n++) {
		CLEANUP(file_done) struct file frozen = { 0 }, f = mixed_file(&w, &frozen);
		uint64_t memory;

		CHECK_EQ(read_at(&w, &f, 0, before, 4 * BLOCK), 4 * BLOCK);
		memory = file_memory(&f);
		allocations_left = n;
		r = file_write(&f, w.c, 100, bytes, 30 * BLOCK, &grown, &need);
		allocations_left = -1;
		CHECK_EQ((int64_t)(file_memory(&f) - memory), grown);
		if (r == 0)
			break;
		failures++;
		CHECK_EQ(r, -ENOMEM);
		CHECK_EQ(f.size, 4 * BLOCK);
		check_bytes(&w, &f, 0, before, 4 * BLOCK);
		CHECK_EQ(seek_from(&w, &f, 0, true), BLOCK);
	}
	CHECK_EQ(r, 0);
	CHECK(failures > 10);
}

TEST(cutting_punching_and_freezing_survive_it_too)
{
	CLEANUP(world_close) struct world w = world_open();
	CLEANUP(file_done) struct file frozen = { 0 }, f = mixed_file(&w, &frozen), copy = { 0 };
	AUTO_FREE uint8_t *before = malloc(4 * BLOCK);
	struct need need;
	int64_t grown;

	CHECK_EQ(read_at(&w, &f, 0, before, 4 * BLOCK), 4 * BLOCK);
	allocations_left = 0;
	CHECK_EQ(file_truncate(&f, 5, &grown), -ENOMEM);
	CHECK_EQ(file_punch(&f, w.c, 5, 4 * BLOCK - 10, &grown, &need), -ENOMEM);
	CHECK_EQ(file_share(&f, &copy), -ENOMEM);
	allocations_left = -1;
	CHECK_EQ(copy.n, 0);
	check_bytes(&w, &f, 0, before, 4 * BLOCK);
}

TEST_MAIN("file-fail")
