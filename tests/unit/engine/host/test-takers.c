#include "engine/host/takers-i.h"

#include "tests/lib/test.h"

#define FILES 1000

TEST(while_clones_are_taken_nobody_walks_unless_somebody_waits)
{
	struct takers t = { 0 };

	CHECK(!takers_hold(&t, 1000));
	takers_took(&t, 0, 1000);
	CHECK(takers_hold(&t, 1000 + TAKERS_MS - 1));
	t.waiting++;
	CHECK(!takers_hold(&t, 1001));
	t.waiting--;
	CHECK(!takers_hold(&t, 1000 + TAKERS_MS));
}

TEST(whoever_asked_for_warm_ones_waits)
{
	struct takers t = { .asked = true };

	CHECK(takers_are_patient(&t, 1000));
	t.asked = false;
	CHECK(!takers_are_patient(&t, 1000));
}

TEST(others_wait_once_one_has_looked_at_most_names)
{
	struct takers t = { 0 };

	takers_took(&t, 50, 1000);
	takers_learn(&t, 50 + FILES / 4, FILES, 1500);
	CHECK(!takers_are_patient(&t, 1500));
	takers_learn(&t, 51 + FILES / 4, FILES, 1500);
	CHECK(takers_are_patient(&t, 1500));
	CHECK(!takers_are_patient(&t, 1500 + TAKERS_KEEP_MS));
}

TEST(what_was_asked_long_after_the_last_one_was_taken_says_nothing)
{
	struct takers t = { 0 };

	takers_took(&t, 0, 1000);
	takers_learn(&t, FILES, FILES, 1000 + TAKERS_LEARN_MS);
	CHECK(!takers_are_patient(&t, 1000 + TAKERS_LEARN_MS));
}

TEST_MAIN("takers")
