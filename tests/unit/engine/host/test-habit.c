#include "engine/host/habit-i.h"

#include "tests/lib/test.h"

#define MINUTE ((uint64_t)60000)
#define ROOMY  ((uint64_t)1 << 40)

static const struct catalog_id mine = { .b = { 1 } }, theirs = { .b = { 2 } };

static size_t expects(const struct habit *h, uint64_t now)
{
	return habit_expects(h, &mine, now, 1000, ROOMY);
}

TEST(one_is_expected_of_a_project_that_was_not_cloned_of_late)
{
	struct habit h = { 0 };

	CHECK_EQ(expects(&h, MINUTE), 1);
	habit_note(&h, &theirs, 5, MINUTE);
	CHECK_EQ(expects(&h, MINUTE), 1);
}

TEST(as_many_as_were_made_at_once_are_expected_again)
{
	struct habit h = { 0 };

	habit_note(&h, &mine, 3, MINUTE);
	CHECK_EQ(expects(&h, MINUTE), 3);
	habit_note(&h, &mine, 1, MINUTE + 500);
	habit_note(&h, &mine, 1, MINUTE + 900);
	CHECK_EQ(expects(&h, MINUTE + 900), 5);
	/* A single one later does not end the habit. */
	habit_note(&h, &mine, 1, 3 * MINUTE);
	CHECK_EQ(expects(&h, 3 * MINUTE), 5);
}

TEST(clones_that_are_made_one_after_the_other_are_no_burst)
{
	struct habit h = { 0 };

	for (uint64_t i = 1; i < 20; i++) {
		habit_note(&h, &mine, 1, i * MINUTE);
		CHECK_EQ(expects(&h, i * MINUTE), 1);
	}
}

TEST(a_habit_is_forgotten_after_a_while)
{
	struct habit h = { 0 };

	habit_note(&h, &mine, 6, MINUTE);
	CHECK_EQ(expects(&h, MINUTE + HABIT_KEEP_MS), 6);
	CHECK_EQ(expects(&h, MINUTE + HABIT_KEEP_MS + 1), 1);
	habit_note(&h, &mine, 2, 2 * MINUTE + HABIT_KEEP_MS);
	CHECK_EQ(expects(&h, 2 * MINUTE + HABIT_KEEP_MS), 2);
}

TEST(an_announcement_is_no_clone)
{
	struct habit h = { 0 };

	habit_note(&h, &mine, 4, MINUTE);
	habit_note(&h, &mine, 0, MINUTE + HABIT_KEEP_MS);
	CHECK_EQ(expects(&h, MINUTE + HABIT_KEEP_MS + 1), 1);
}

TEST(memory_and_a_number_bound_what_is_made_in_vain)
{
	struct habit h = { 0 };

	habit_note(&h, &mine, 1000, MINUTE);
	CHECK_EQ(expects(&h, MINUTE), HABIT_MAX);
	CHECK_EQ(habit_expects(&h, &mine, MINUTE, 1000, 8 * 3000), 3);
	CHECK_EQ(habit_expects(&h, &mine, MINUTE, 1000, 100), 1);
	CHECK_EQ(habit_expects(&h, &mine, MINUTE, 0, 0), HABIT_MAX);
}

TEST_MAIN("habit")
