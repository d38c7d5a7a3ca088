/*
 * What two sides did to the same paths, without merging it.
 */
#include <errno.h>

#include "snapshot/merge/merge.h"
#include "tests/unit/snapshot/merge/merge-trial.h"

static int note_overlap(const char *path, enum merge_overlap overlap, void *ctx, struct err *err)
{
	static const char *const words[] = { "same", "apart", "overlap" };

	(void)err;
	CHECK_EQ(buf_printf(ctx, "%s %s\n", path, words[overlap]), 0);
	return 0;
}

TEST(what_two_sides_touch_is_told_with_whether_it_overlaps)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	CLEANUP(buf_done) struct buf got = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(try(&t,
		     TREE(F("apart", TEN), F("both", TEN), F("edit", "1"), F("mode", "1"),
			  F("ours", "1"), F("same", "1"), F("bin", "\0", .len = 1), F("gone", "1")),
		     TREE(F("apart", TEN2), F("both", TEN2), F("mode", "2"), F("ours", "2"),
			  F("same", "2"), F("bin", "\0a", .len = 2), F("new", "a\n")),
		     TREE(F("apart", TEN8), F("both", "x\n"), F("edit", "2"),
			  F("mode", "1", .mode = S_IFREG | 0755), F("ours", "1"), F("same", "2"),
			  F("bin", "\0b", .len = 2), F("new", "b\n")),
		     NULL, &err),
		 &err);
	CHECK_OK(merge_overlap(store, &t.base, &t.ours, &t.theirs, note_overlap, &got, &err), &err);
	CHECK_STR(buf_str(&got), "apart apart\nbin overlap\nboth overlap\nedit overlap\ngone same\n"
				 "mode apart\nnew overlap\nsame same\n");
}

static int stop_at_once(const char *path, enum merge_overlap overlap, void *ctx, struct err *err)
{
	(void)path;
	(void)overlap;
	(void)ctx;
	return err_set(err, -ECANCELED, "enough");
}

TEST(who_has_heard_enough_of_overlaps_ends_it)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	struct err err = { 0 };

	CHECK_OK(try(&t, TREE(F("f", "a")), TREE(F("f", "b")), TREE(F("f", "c")), NULL, &err),
		 &err);
	CHECK_EQ(merge_overlap(store, &t.base, &t.ours, &t.theirs, stop_at_once, NULL, &err),
		 -ECANCELED);
}

TRIAL_MAIN("merge-overlap")
