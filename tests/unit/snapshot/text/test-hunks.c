/* Where lines differ: the short way must say what libgit2 says, to the line. */
#include "snapshot/text/hunks-i.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

/* Few different lines, so that many can be matched in several ways. */
static void random_lines(struct buf *out, struct test_rng *rng, size_t n, unsigned kinds)
{
	static const char *const words[] = { "}", "", "\tx;", "if (y) {", "return", "a", "b", "c" };
	char line[32];

	for (size_t i = 0; i < n; i++) {
		const unsigned k = (unsigned)(test_rand(rng) % kinds);

		if (k < ARRAY_LEN(words))
			snprintf(line, sizeof(line), "%s\n", words[k]);
		else
			snprintf(line, sizeof(line), "line %u\n", k);
		CHECK_EQ(buf_append_str(out, line), 0);
	}
}

static size_t skip_lines(const struct buf *text, size_t n)
{
	size_t at = 0;

	for (; n > 0 && at < text->len; n--) {
		const uint8_t *newline = memchr(text->data + at, '\n', text->len - at);

		at = newline ? (size_t)(newline - text->data) + 1 : text->len;
	}
	return at;
}

/* Another text in the place of some lines, in one place or, now and then, in two. */
static void random_edit(const struct buf *from, struct buf *to, struct test_rng *rng,
			unsigned kinds)
{
	const size_t lines = hunks_count_lines(from);
	const size_t first = test_rand(rng) % (lines + 1);
	const size_t gone = test_rand(rng) % 3 ? test_rand(rng) % 4 : 0;
	const size_t at = skip_lines(from, first), end = skip_lines(from, first + gone);

	CHECK_EQ(buf_append(to, from->data, at), 0);
	random_lines(to, rng, test_rand(rng) % 5, kinds);
	CHECK_EQ(buf_append(to, from->data + end, from->len - end), 0);
	if (to->len > 0 && test_rand(rng) % 10 == 0)
		to->len--;
}

static void check_same(const struct buf *a, const struct buf *b)
{
	CLEANUP(hunks_done) struct hunks ours = { 0 }, git = { 0 };
	struct err err = { 0 };

	CHECK_OK(hunks_find(a, b, &ours, &err), &err);
	CHECK_OK(hunks_find_by_git(a, b, &git, &err), &err);
	CHECK_EQ(ours.n, git.n);
	for (size_t i = 0; i < git.n; i++) {
		CHECK_EQ(ours.list[i].a, git.list[i].a);
		CHECK_EQ(ours.list[i].n_a, git.list[i].n_a);
		CHECK_EQ(ours.list[i].b, git.list[i].b);
		CHECK_EQ(ours.list[i].n_b, git.list[i].n_b);
	}
}

TEST(edits_of_any_text_are_where_libgit2_says)
{
	static const unsigned kinds[] = { 2, 5, 9, 40, 100000 };
	struct test_rng rng = { .s = test_seed() };

	for (unsigned i = 0; i < 4000; i++) {
		CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT, c = BUF_INIT;
		const unsigned k = kinds[i % ARRAY_LEN(kinds)];

		random_lines(&a, &rng, test_rand(&rng) % (i % 50 == 0 ? 600 : 30), k);
		random_edit(&a, &b, &rng, k);
		check_same(&a, &b);
		check_same(&b, &a);
		random_edit(&b, &c, &rng, k);
		check_same(&a, &c);
	}
}

TEST(texts_without_lines_or_without_a_last_newline)
{
	static const char *const texts[] = { "",     "\n",     "a",      "a\n",      "a\nb",
					     "\n\n", "a\nb\n", "b\na\n", "a\na\na\n" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
			CLEANUP(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;

			CHECK_EQ(buf_append_str(&a, texts[i]), 0);
			CHECK_EQ(buf_append_str(&b, texts[k]), 0);
			check_same(&a, &b);
		}
}

TEST_MAIN("hunks")
