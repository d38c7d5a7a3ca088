#include "base/cquote.h"

#include "tests/lib/test.h"

static void check_quoted(const char *name, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;

	CHECK_EQ(cquote_append(&out, "a/", name), 0);
	CHECK_STR(buf_str(&out), want);
}

TEST(a_plain_name_stands_as_it_is)
{
	check_quoted("src/main.c", "a/src/main.c");
	check_quoted("with blank and 'quote'", "a/with blank and 'quote'");
	check_quoted("gr\xc3\xbc\xc3\x9f\x65", "a/gr\xc3\xbc\xc3\x9f\x65");
}

TEST(what_would_end_a_line_or_a_quote_is_escaped)
{
	check_quoted("a\nb", "\"a/a\\nb\"");
	check_quoted("\a\b\t\v\f\r\"\\", "\"a/\\a\\b\\t\\v\\f\\r\\\"\\\\\"");
}

TEST(control_bytes_and_what_is_no_utf8_are_octal)
{
	check_quoted("\001\033\177", "\"a/\\001\\033\\177\"");
	check_quoted("\377x\xc3", "\"a/\\377x\\303\"");
	/* A sign that turns the writing direction is no printable character. */
	check_quoted("\xe2\x80\xae", "\"a/\\342\\200\\256\"");
	check_quoted("\xc3\xa4\n", "\"a/\xc3\xa4\\n\"");
}

static size_t measured; /* bytes that strlen() went over */

size_t __real_strlen(const char *s);
size_t __wrap_strlen(const char *s);

size_t __wrap_strlen(const char *s)
{
	const size_t len = __real_strlen(s);

	measured += len;
	return len;
}

TEST(a_long_name_costs_as_much_as_it_is_long)
{
	const size_t len = 64 << 10;
	AUTO_FREE char *name = malloc(len + 1);

	CHECK(name != NULL);
	memset(name, 'd', len);
	name[len] = '\0';
	for (int escaped = 0; escaped < 2; escaped++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT;

		name[0] = escaped ? '\n' : 'd';
		measured = 0;
		CHECK_EQ(cquote_append(&out, "", name), 0);
		CHECK_EQ(out.len, escaped ? len + 3 : len);
		CHECK(measured <= 8 * len); /* not once for each character */
	}
}

TEST_MAIN("cquote")
