/*
 * What a terminal is shown of somebody else's text holds nothing that it would obey and nothing
 * that nobody could see, wherever the stream is cut.
 */
#include "tests/lib/test.h"

#include <string.h>

#include "base/utf8.h"
#include "base/visible.h"

static void check_shown(const char *text, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct visible v = { 0 };

	CHECK_EQ(visible_append(&v, text, strlen(text), &out), 0);
	CHECK_EQ(visible_end(&v, &out), 0);
	CHECK_STR(buf_str(&out), want);
}

TEST(what_is_plain_passes)
{
	check_shown("", "");
	check_shown("a b\tc\nd", "a b\tc\nd");
	check_shown("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		    "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(what_a_terminal_obeys_is_shown)
{
	check_shown("\x1b[8mx\x1b[0m", "^[[8mx^[[0m");
	check_shown("\x1b]52;c;eA==\a", "^[]52;c;eA==^G");
	check_shown("good\rbad\b\x7f", "good^Mbad^H^?");
	check_shown("\x9b"
		    "8m",
		    "<9B>8m");
	check_shown("\xc2\x9b"
		    "8m",
		    "<U+009B>8m");
	check_shown("caf\xe9", "caf<E9>");
}

TEST(what_nobody_sees_is_shown)
{
	check_shown("\xe2\x80\xae"
		    "a\xe2\x81\xa6",
		    "<U+202E>a<U+2066>");
	check_shown("ad\xe2\x80\x8bmin\xef\xbb\xbf", "ad<U+200B>min<U+FEFF>");
	check_shown("\xf3\xa0\x81\x81", "<U+E0041>");
	check_shown("a\xef\xb8\x8f", "a<U+FE0F>");
	check_shown("\xe2\x9a\xa0\xef\xb8\x8f", "\xe2\x9a\xa0\xef\xb8\x8f");
	check_shown("\xe2\x9a\xa0\xef\xb8\x8f\xef\xb8\x8f", "\xe2\x9a\xa0\xef\xb8\x8f<U+FE0F>");
}

TEST(what_is_shown_instead_can_be_marked)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct visible v = { .on = "{", .off = "}" };

	CHECK_EQ(visible_append(&v,
				"a\x1b"
				"b",
				3, &out),
		 0);
	CHECK_STR(buf_str(&out), "a{^[}b");
}

TEST(where_it_is_cut_does_not_show)
{
	static const char *const parts[] = {
		"a",    "\xc3\xa4", "\xe2\x80\xae", "\xf0\x9f\x98\x80", "\xef\xb8\x8f", "\x1b",
		"\xe2", "\xf0\x9f", "\xff",         "\xe2\x9a\xa0",     "\n",           "\x80"
	};
	struct test_rng rng = { .s = test_seed() };

	for (int i = 0; i < 2000; i++) {
		CLEANUP(buf_done) struct buf whole = BUF_INIT, cut = BUF_INIT, text = BUF_INIT;
		struct visible a = { 0 }, b = { 0 };

		for (int k = 0; k < 12; k++)
			CHECK_EQ(buf_append_str(&text, parts[test_rand(&rng) % ARRAY_LEN(parts)]),
				 0);
		CHECK_EQ(visible_append(&a, text.data, text.len, &whole), 0);
		CHECK_EQ(visible_end(&a, &whole), 0);
		for (size_t at = 0, n; at < text.len; at += n) {
			n = 1 + test_rand(&rng) % 5;
			n = n < text.len - at ? n : text.len - at;
			CHECK_EQ(visible_append(&b, text.data + at, n, &cut), 0);
		}
		CHECK_EQ(visible_end(&b, &cut), 0);
		CHECK_STR(buf_str(&cut), buf_str(&whole));
		for (size_t at = 0, n; at < cut.len; at += n) {
			n = utf8_valid((const char *)cut.data + at, cut.len - at);
			CHECK(n > 0);
		}
	}
}

TEST_MAIN("visible")
