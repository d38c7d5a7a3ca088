#include "tests/lib/test.h"

#include "base/utf8.h"

TEST(printable_characters_of_every_length_are_measured)
{
	CHECK_EQ(utf8_printable("a", 1), 1);
	CHECK_EQ(utf8_printable(" ~", 2), 1);
	CHECK_EQ(utf8_printable("\xc2\xa0", 2), 2);
	CHECK_EQ(utf8_printable("\xdf\xbf", 2), 2);
	CHECK_EQ(utf8_printable("\xe0\xa0\x80", 3), 3);
	CHECK_EQ(utf8_printable("\xef\xbf\xbd", 3), 3);
	CHECK_EQ(utf8_printable("\xf0\x90\x80\x80", 4), 4);
	CHECK_EQ(utf8_printable("\xf4\x8f\xbf\xbd", 4), 4);
}

TEST(malformed_sequences_are_refused)
{
	static const char *const bad[] = {
		"\x80",             /* continues nothing */
		"\xc3",             /* cut short */
		"\xc3(",            /* not continued */
		"\xe2\x82",         /* cut short */
		"\xc0\xaf",         /* '/' in two bytes */
		"\xc1\xbf",         /* overlong */
		"\xe0\x80\xaf",     /* overlong */
		"\xe0\x9f\xbf",     /* overlong */
		"\xf0\x8f\xbf\xbf", /* overlong */
		"\xed\xa0\x80",     /* surrogate */
		"\xed\xbf\xbf",     /* surrogate */
		"\xf4\x90\x80\x80", /* above U+10FFFF */
		"\xf5\x80\x80\x80",
		"\xff",
		"\xfe",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(utf8_printable(bad[i], strlen(bad[i])), 0);
	CHECK_EQ(utf8_printable("", 0), 0);
	CHECK_EQ(utf8_printable("\xe2\x82\xac", 2), 0);
}

TEST(what_a_terminal_or_an_eye_could_be_fooled_by_is_refused)
{
	static const char *const bad[] = {
		"\n",           "\x1b",     "\x7f",         "\xc2\x80",
		"\xc2\x9b",     "\xc2\x9f", "\xe2\x80\xa8", /* line separator */
		"\xe2\x80\xae",                             /* right-to-left override */
		"\xe2\x81\xa6",                             /* left-to-right isolate */
		"\xe2\x80\x8f", "\xd8\x9c",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(utf8_printable(bad[i], strlen(bad[i])), 0);
	CHECK_EQ(utf8_printable("\0", 1), 0);
}

TEST(a_valid_character_is_measured_even_if_it_must_not_be_shown)
{
	CHECK_EQ(utf8_valid("\n", 1), 1);
	CHECK_EQ(utf8_valid("\0", 1), 1);
	CHECK_EQ(utf8_valid("\xc2\x9b", 2), 2);
	CHECK_EQ(utf8_valid("\xe2\x80\xae", 3), 3);
	CHECK_EQ(utf8_valid("\xe2\x80\xae", 2), 0);
	CHECK_EQ(utf8_valid("\xed\xa0\x80", 3), 0);
	CHECK_EQ(utf8_valid("", 0), 0);
}

TEST_MAIN("utf8")
