#include "tests/lib/test.h"

#include "base/typo.h"

static const char *guess(const char *typed)
{
	static const char *const words[] = {
		"json", "name-only", "verbose", "mem", "net", "quiet"
	};
	struct typo t = TYPO_INIT(typed, strlen(typed));
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++)
		typo_offer(&t, words[i]);
	return t.best;
}

TEST(one_slip_is_recognised)
{
	CHECK_STR(guess("jsno"), "json");
	CHECK_STR(guess("jso"), "json");
	CHECK_STR(guess("jsonn"), "json");
	CHECK_STR(guess("jxon"), "json");
	CHECK_STR(guess("mme"), "mem");
	CHECK_STR(guess("nam-onyl"), "name-only");
}

TEST(a_beginning_is_recognised)
{
	CHECK_STR(guess("verb"), "verbose");
	CHECK_STR(guess("na"), "name-only");
}

TEST(what_resembles_nothing_gets_no_suggestion)
{
	CHECK(!guess("frobnicate"));
	CHECK(!guess("abcd"));
	CHECK(!guess("x"));
	CHECK(!guess(""));
	CHECK(!guess("a-word-that-is-longer-than-any-option-of-ours-could-ever-be"));
}

TEST(the_nearest_wins_and_of_equals_the_first)
{
	struct typo t = TYPO_INIT("status", 6);

	typo_offer(&t, "stat");
	CHECK_STR(t.best, "stat");
	typo_offer(&t, "statuss");
	CHECK_STR(t.best, "statuss");
	t = TYPO_INIT("bat", 3);
	typo_offer(&t, "cat");
	typo_offer(&t, "hat");
	CHECK_STR(t.best, "cat");
}

TEST(only_the_given_part_of_the_word_counts)
{
	struct typo t = TYPO_INIT("jsno=yes", 4);

	typo_offer(&t, "json");
	CHECK_STR(t.best, "json");
}

TEST_MAIN("typo")
