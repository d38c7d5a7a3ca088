#include "tests/lib/test.h"

#include <stdint.h>
#include <string.h>

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

TEST(room_for_many_is_exact_at_first_and_doubles_later)
{
	AUTO_FREE uint32_t *list = NULL;
	size_t n = 0, cap = 0;

	CHECK(VEC_RESERVE(list, n, cap, 0));
	CHECK(!list);
	CHECK(VEC_RESERVE(list, n, cap, 9));
	CHECK_EQ(cap, 9);
	for (uint32_t i = 0; i < 9; i++)
		list[n++] = i;
	CHECK(VEC_RESERVE(list, n, cap, 1));
	CHECK_EQ(cap, 18);
	CHECK(VEC_RESERVE(list, n, cap, 9));
	CHECK_EQ(cap, 18);
	CHECK(!VEC_RESERVE(list, n, cap, SIZE_MAX));
	CHECK(!VEC_RESERVE(list, n, cap, SIZE_MAX / 4));
	CHECK_EQ(cap, 18);
	for (uint32_t i = 0; i < n; i++)
		CHECK_EQ(list[i], i);
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

static int by_size(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

TEST(an_array_is_sorted_and_there_may_be_none)
{
	int list[] = { 3, 1, 2 }, *none = NULL;

	VEC_SORT(list, ARRAY_LEN(list), by_size);
	CHECK(list[0] == 1 && list[1] == 2 && list[2] == 3);
	VEC_SORT(none, 0, by_size);
}

struct pair {
	int key;
	char *text;
};

struct pairs {
	struct pair *list;
	size_t n;
	int other;
};

TEST(the_first_that_matches_is_found)
{
	const struct pair list[] = { { 1, NULL }, { 2, NULL }, { 2, NULL } };
	const struct pair *none = NULL;

	CHECK(VEC_FIND(p, list, ARRAY_LEN(list), p->key == 2) == &list[1]);
	CHECK(!VEC_FIND(p, list, ARRAY_LEN(list), p->key == 3));
	CHECK(!VEC_FIND(p, list, 1, p->key == 2));
	CHECK(!VEC_FIND(p, none, 0, p->key == 2));
	CHECK(VEC_HAS(p, list, ARRAY_LEN(list), p->key == 1));
	CHECK(!VEC_HAS(p, list, ARRAY_LEN(list), p->key == 0));
	CHECK(VEC_ALL(p, list, ARRAY_LEN(list), p->key == 1 || p->key == 2));
	CHECK(!VEC_ALL(p, list, ARRAY_LEN(list), p->key == 1));
	CHECK(VEC_ALL(p, none, 0, p->key == 1));
}

TEST(none_is_asked_after_the_first_that_matches)
{
	const int list[] = { 1, 2, 3 };
	int asked = 0;

	CHECK(VEC_HAS(p, list, ARRAY_LEN(list), (asked++, *p == 2)));
	CHECK_EQ(asked, 2);
}

static void pair_done(struct pair *p)
{
	free(p->text);
}

static DEFINE_LIST_DONE(pairs_done, struct pairs, pair_done)

/* Two of them, where the leak checker is the other half of the test. */
static struct pair *make_pairs(void)
{
	struct pair *list = calloc(2, sizeof(*list));

	CHECK(list);
	for (size_t i = 0; i < 2; i++)
		list[i].text = strdup("text");
	return list;
}

TEST(numbers_are_sorted_and_each_is_kept_once)
{
	uint64_t list[] = { 7, UINT64_MAX, 0, 7, 3, 0 }, want[] = { 0, 3, 7, UINT64_MAX };

	CHECK_MEM(list, vec_unique_u64(list, ARRAY_LEN(list)) * sizeof(*list), want, sizeof(want));
	CHECK_EQ(vec_unique_u64(list, 1), 1);
	CHECK_EQ(vec_unique_u64(NULL, 0), 0);
}

TEST(an_array_is_freed_with_what_its_elements_own)
{
	struct pair *list = make_pairs(), *none = NULL;
	int n = 0;

	VEC_FREE(p, list, 2, (n++, pair_done(p)));
	CHECK_EQ(n, 2);
	VEC_FREE(p, none, (n++, 2), (n++, pair_done(p)));
	CHECK_EQ(n, 2);
}

TEST(a_list_that_is_done_is_empty)
{
	struct pairs all = { make_pairs(), 2, 7 };

	pairs_done(&all);
	CHECK(!all.list);
	CHECK_EQ(all.n, 0);
	CHECK_EQ(all.other, 0);
	pairs_done(&all);
}

TEST_MAIN("vec")
