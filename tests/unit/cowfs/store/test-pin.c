#include "cowfs/store/pin.h"

#include <errno.h>

#include "tests/unit/cowfs/store/upkeep/gc-fixture.h"

static void pin(struct store *s, enum object_kind kind, const struct object_id *id)
{
	struct err err = { 0 };

	CHECK_OK(store_pin(s, kind, id, &err), &err);
}

TEST(what_is_pinned_survives_with_all_that_it_reaches)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("reaches"), STORE_CREATE);
	const struct object_id root = stock_snapshot(s, "a", "text");

	pin(s, OBJECT_TREE, &root);
	stock_drop(s, "a");
	CHECK_EQ(stock_gc(s).swept, 0);
	CHECK(stock_root_is_whole(s, &root, "text"));
	store_unpin(s, OBJECT_TREE, &root);
	CHECK_EQ(stock_gc(s).swept, 3);
	CHECK_EQ(stock_rows(s), 0);
}

TEST(of_what_is_around_a_pinned_file_nothing_stays)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("around"), STORE_CREATE);
	struct tree_entry big, hard;

	stock_fill(s);
	big = stock_entry(s, "one", "big");
	hard = stock_entry(s, "one", "readme");
	CHECK(big.form == TREE_RECIPE && !object_id_is_zero(&hard.xattrs));
	pin(s, OBJECT_RECIPE, &big.id);
	pin(s, OBJECT_XATTRS, &hard.xattrs);
	stock_drop(s, "one");
	stock_drop(s, "two");
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);
		struct err err = { 0 };

		CHECK_OK(ref_delete(b, REF_CLONE, "work", 4, &err), &err);
		CHECK_OK(ref_delete(b, REF_TAG, "v1", 2, &err), &err);
		stock_commit(b);
	}
	stock_gc(s);
	/* A recipe with its two chunks, and the attributes. */
	CHECK_EQ(stock_rows(s), 4);
	stock_check_clean(s);
}

TEST(what_a_batch_pinned_stays_until_it_ends)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("batch"), STORE_CREATE);
	const struct object_id root = stock_snapshot(s, "a", "text");
	struct batch *b = stock_begin(s);
	struct err err = { 0 };

	CHECK_OK(batch_pin(b, &root, &err), &err);
	CHECK_OK(batch_pin(b, &root, &err), &err);
	stock_drop(s, "a");
	CHECK_EQ(stock_gc(s).swept, 0);
	batch_end(b);
	CHECK_EQ(stock_gc(s).swept, 3);
}

TEST(pins_are_counted)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("counted"), STORE_CREATE);
	const struct object_id root = stock_snapshot(s, "a", "text");

	for (int i = 0; i < 3; i++)
		pin(s, OBJECT_TREE, &root);
	stock_drop(s, "a");
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(stock_gc(s).swept, 0);
		store_unpin(s, OBJECT_TREE, &root);
	}
	CHECK_EQ(stock_gc(s).swept, 3);
}

TEST(pins_end_with_the_process_that_set_them)
{
	const char *path = test_path("end");
	struct store *s = stock_open(path, STORE_CREATE);
	const struct object_id root = stock_snapshot(s, "a", "text");

	pin(s, OBJECT_TREE, &root);
	stock_drop(s, "a");
	store_close(s);
	s = stock_open(path, STORE_WRITE);
	CHECK_EQ(stock_gc(s).swept, 3);
	store_close(s);
}

/* Pin before step `pin_at` of a gc, drop the name before `drop_at`; how many steps there were. */
static unsigned pin_beside_gc(struct store *s, unsigned pin_at, unsigned drop_at)
{
	const struct object_id root = stock_snapshot(s, "a", "text");
	struct gc *g = begin_gc(s);
	struct gc_progress p;
	unsigned n = 0;
	bool more = true;

	while (more) {
		n++;
		if (n == pin_at)
			pin(s, OBJECT_TREE, &root);
		if (n == drop_at)
			stock_drop(s, "a");
		more = step(g, 1, &p);
	}
	gc_end(g);
	if (pin_at > n)
		pin(s, OBJECT_TREE, &root);
	if (drop_at > n)
		stock_drop(s, "a");
	stock_gc(s);
	CHECK(stock_root_is_whole(s, &root, "text"));
	store_unpin(s, OBJECT_TREE, &root);
	stock_gc(s);
	CHECK_EQ(stock_rows(s), 0);
	return n;
}

TEST(a_pin_set_at_any_step_of_a_gc_holds)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("steps"), STORE_CREATE);
	unsigned steps = 1;

	for (unsigned pin_at = 1; pin_at <= steps + 1; pin_at++)
		for (unsigned drop_at = pin_at; drop_at <= steps + 1; drop_at++)
			steps = pin_beside_gc(s, pin_at, drop_at);
	CHECK(steps > 5);
}

TEST(what_only_a_pin_keeps_can_be_named_again)
{
	CLEANUP(store_close_p) struct store *s = stock_open(test_path("again"), STORE_CREATE);
	const struct object_id root = stock_snapshot(s, "a", "text");
	struct gc *g;

	pin(s, OBJECT_TREE, &root);
	stock_drop(s, "a");
	g = begin_gc(s);
	{
		CLEANUP(batch_end_p) struct batch *b = stock_begin(s);

		stock_name(b, REF_SNAPSHOT, "b", &root, REF_NEW);
		stock_commit(b);
	}
	store_unpin(s, OBJECT_TREE, &root);
	finish_gc(g);
	CHECK(stock_root_is_whole(s, &root, "text"));
	stock_check_clean(s);
}

TEST_MAIN("pin")
