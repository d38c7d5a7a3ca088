/* What is a traceparent by the letter of the specification, and what is not. */
#include "base/traceparent.h"

#include <string.h>

#include "tests/lib/test.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
#define NULL8 "00000000"

TEST(one_is_taken_as_it_is)
{
	char got[TRACEPARENT_SIZE];

	CHECK(traceparent_take("00-" TRACE "-" SPAN "-01", got));
	CHECK_STR(got, "00-" TRACE "-" SPAN "-01");
}

TEST(of_a_later_version_the_known_parts_are_taken)
{
	char got[TRACEPARENT_SIZE];

	CHECK(traceparent_take("cc-" TRACE "-" SPAN "-01-what-else", got));
	CHECK_STR(got, "00-" TRACE "-" SPAN "-01");
	CHECK(traceparent_take("01-" TRACE "-" SPAN "-00", got));
	CHECK_STR(got, "00-" TRACE "-" SPAN "-00");
}

TEST(anything_else_is_none)
{
	static const char *const wrong[] = {
		"",
		"00",
		"00-" TRACE "-" SPAN,
		"00-" TRACE "-" SPAN "-",
		"00-" TRACE "-" SPAN "-0",
		"00-" TRACE "-" SPAN "-012",
		"00-" TRACE "-" SPAN "-01-more",
		"00-" TRACE "-" SPAN "-01 ",
		"01-" TRACE "-" SPAN "-01more",
		"ff-" TRACE "-" SPAN "-01",
		"0-" TRACE "-" SPAN "-01",
		"000-" TRACE "-" SPAN "-01",
		"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
		"00-" NULL8 NULL8 NULL8 NULL8 "-" SPAN "-01",
		"00-" TRACE "-" NULL8 NULL8 "-01",
		"00_" TRACE "-" SPAN "-01",
		"00-" TRACE "_" SPAN "-01",
		"00-" TRACE "-" SPAN "_01",
		"00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
		"00-" TRACE "-" SPAN "-0g",
	};
	char got[TRACEPARENT_SIZE] = "before";

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		if (traceparent_take(wrong[i], got))
			fail_msg("'%s' was taken", wrong[i]);
		CHECK_STR(got, "");
	}
	CHECK(!traceparent_take(NULL, got));
}

TEST_MAIN("traceparent")
