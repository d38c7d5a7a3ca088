#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strlist.h"

TEST(a_list_keeps_copies_in_order_and_ends_with_null)
{
	CLEANUP(strlist_done) struct strlist l = { 0 };
	char text[16];

	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "%d", i);
		CHECK_EQ(strlist_add(&l, text), 0);
		CHECK_EQ(l.n, (size_t)i + 1);
		CHECK(!l.list[l.n]);
	}
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "%d", i);
		CHECK_STR(l.list[i], text);
	}
	CHECK(strlist_has(&l, "99") && !strlist_has(&l, "100"));
}

TEST(a_string_that_is_handed_over_is_not_copied)
{
	CLEANUP(strlist_done) struct strlist l = { 0 };
	char *text = strdup("mine");

	CHECK_EQ(strlist_take(&l, text), 0);
	CHECK(l.list[0] == text);
	CHECK_EQ(strlist_take(&l, NULL), -ENOMEM);
	CHECK_EQ(l.n, 1);
}

TEST(a_callback_adds_a_copy)
{
	CLEANUP(strlist_done) struct strlist l = { 0 };
	int (*add)(const char *text, void *list) = strlist_add_to;

	CHECK_EQ(add("one", &l), 0);
	CHECK(l.n == 1 && strcmp(l.list[0], "one") == 0);
}

TEST(a_list_is_sorted_by_its_bytes)
{
	CLEANUP(strlist_done) struct strlist l = { 0 };

	strlist_sort(&l);
	CHECK(strlist_add(&l, "b") == 0 && strlist_add(&l, "a\xff") == 0);
	CHECK(strlist_add(&l, "az") == 0 && strlist_add(&l, "B") == 0);
	strlist_sort(&l);
	CHECK_STR(l.list[0], "B");
	CHECK_STR(l.list[1], "az");
	CHECK_STR(l.list[2], "a\xff");
	CHECK_STR(l.list[3], "b");
	CHECK(!l.list[4]);
}

TEST(an_empty_list_has_nothing_and_can_be_filled_again)
{
	struct strlist l = { 0 };

	CHECK(!strlist_has(&l, ""));
	strlist_done(&l);
	CHECK_EQ(strlist_add(&l, ""), 0);
	CHECK(strlist_has(&l, ""));
	strlist_done(&l);
	CHECK(!l.list && l.n == 0 && l.cap == 0);
}

TEST_MAIN("strlist")
