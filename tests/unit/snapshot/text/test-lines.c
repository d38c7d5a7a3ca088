#include "snapshot/text/lines-i.h"

#include "tests/lib/test.h"

#define LINES 12

static size_t longest_common(const struct lines *l)
{
	size_t best[LINES + 1][LINES + 1] = { 0 };

	for (size_t i = 0; i < l->n_a; i++)
		for (size_t j = 0; j < l->n_b; j++) {
			const size_t left = best[i][j + 1], up = best[i + 1][j];
			const bool same = l->a[i].len == l->b[j].len &&
					  memcmp(l->a[i].text, l->b[j].text, l->a[i].len) == 0;

			best[i + 1][j + 1] = same ? best[i][j] + 1 : left > up ? left : up;
		}
	return best[l->n_a][l->n_b];
}

static void append(struct buf *to, const struct line *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(buf_append(to, list[i].text, list[i].len), 0);
}

/* The old text with the blocks applied is the new one; the number of lines that go and come. */
static size_t check_blocks(const struct lines *l, const struct buf *b)
{
	CLEANUP(buf_done) struct buf made = BUF_INIT;
	size_t at = 0, edits = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct lines_block *block = &l->blocks[i];

		CHECK(i == 0 ? block->a >= at : block->a > at);
		append(&made, l->a + at, block->a - at);
		append(&made, l->b + block->b, block->n_b);
		at = block->a + block->n_a;
		edits += block->n_a + block->n_b;
	}
	append(&made, l->a + at, l->n_a - at);
	CHECK_MEM(made.data, made.len, b->data, b->len);
	return edits;
}

static void make_text(struct test_rng *rng, struct buf *b)
{
	for (size_t n = test_rand(rng) % (LINES + 1); n > 0; n--)
		CHECK_EQ(buf_printf(b, "%c\n", (char)('a' + test_rand(rng) % 4)), 0);
	if (b->len > 0 && test_rand(rng) % 4 == 0)
		b->len--;
}

TEST(blocks_make_the_new_text_and_are_as_few_lines_as_can_be)
{
	struct test_rng rng = { test_seed() };

	for (int i = 0; i < 20000; i++) {
		CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;
		CLEANUP(lines_done) struct lines l = { 0 };
		struct err err = { 0 };

		make_text(&rng, &a);
		make_text(&rng, &b);
		CHECK_EQ(lines_compare(&a, &b, &l, &err), 1);
		CHECK_EQ(check_blocks(&l, &b), l.n_a + l.n_b - 2 * longest_common(&l));
	}
}

TEST(texts_that_differ_too_much_are_left_to_others)
{
	CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT, none = BUF_INIT;
	CLEANUP(lines_done) struct lines l = { 0 };
	struct err err = { 0 };

	for (int i = 0; i < 500; i++) {
		CHECK_EQ(buf_printf(&a, "a %d\n", i), 0);
		CHECK_EQ(buf_printf(&b, "b %d\n", i), 0);
	}
	CHECK_EQ(lines_compare(&a, &b, &l, &err), 0);
	/* But not where all of it comes or goes. */
	CHECK_EQ(lines_compare(&a, &none, &l, &err), 1);
	CHECK_EQ(l.n, 1);
	CHECK_EQ(l.blocks[0].n_a, 500);
}

TEST(texts_that_are_too_long_are_left_to_others)
{
	CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;
	CLEANUP(lines_done) struct lines l = { 0 };
	struct err err = { 0 };
	void *p = buf_extend(&a, 100001);

	CHECK(p != NULL);
	memset(p, '\n', 100001);
	CHECK_EQ(lines_compare(&a, &b, &l, &err), 0);
	CHECK_EQ(lines_compare(&b, &a, &l, &err), 0);
}

TEST_MAIN("lines")
