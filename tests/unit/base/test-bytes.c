#include "tests/lib/test.h"

#include "base/bytes.h"

TEST(runs_are_ordered_by_their_bytes_and_a_beginning_comes_first)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rising[] = {
		{ "", 0 },     { "\0", 1 },   { "\0\0", 2 }, { "\0b", 2 },      { "A", 1 },
		{ "a", 1 },    { "a\0", 2 },  { "ab", 2 },   { "b", 1 },        { "b/1", 3 },
		{ "\x7f", 1 }, { "\x80", 1 }, { "\xff", 1 }, { "\xff\xff", 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rising); i++) {
		for (size_t j = 0; j < ARRAY_LEN(rising); j++) {
			const int order = bytes_compare(rising[i].bytes, rising[i].len,
							rising[j].bytes, rising[j].len);

			CHECK_EQ((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
}

TEST(an_empty_run_may_stand_nowhere)
{
	CHECK_EQ(bytes_compare(NULL, 0, NULL, 0), 0);
	CHECK(bytes_compare(NULL, 0, "a", 1) < 0);
	CHECK(bytes_compare("a", 1, NULL, 0) > 0);
}

TEST_MAIN("bytes")
