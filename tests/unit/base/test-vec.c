#include "tests/lib/test.h"

#include <stdint.h>

#include "base/vec.h"

TEST(an_array_grows_and_keeps_what_it_holds)
{
	AUTO_FREE uint32_t *list = NULL;
	size_t n = 0, cap = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		CHECK(VEC_ROOM(list, n, cap));
		CHECK(n < cap);
		list[n++] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		CHECK_EQ(list[i], i);
}

TEST(one_with_room_stays_where_it_is)
{
	AUTO_FREE char **list = NULL;
	size_t n = 0, cap = 0;
	char **before;

	CHECK(VEC_ROOM(list, n, cap));
	before = list;
	CHECK(VEC_ROOM(list, n, cap));
	CHECK(list == before && cap > 0);
}

TEST(without_memory_nothing_changes)
{
	AUTO_FREE uint64_t *list = NULL;
	size_t n = 0, cap = 0, large = SIZE_MAX / 4;

	CHECK(VEC_ROOM(list, n, cap));
	CHECK(!vec_more(list, large, &large, sizeof(*list)));
	CHECK_EQ(large, SIZE_MAX / 4);
}

TEST(an_array_that_does_not_know_its_room_grows_too)
{
	AUTO_FREE uint32_t *list = NULL;
	size_t n = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		CHECK(VEC_ONE_MORE(list, n));
		list[n++] = i;
	}
	for (uint32_t i = 0; i < 1000; i++)
		CHECK_EQ(list[i], i);
}

TEST_MAIN("vec")
