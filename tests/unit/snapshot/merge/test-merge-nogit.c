/*
 * A machine without libgit2 says so, and does not guess.
 */
#include <dlfcn.h>
#include <errno.h>

#include "snapshot/merge/merge.h"
#include "tests/unit/snapshot/merge/merge-trial.h"

/* In the place of the original (--wrap). */
void *__wrap_dlopen(const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags)
{
	(void)name;
	(void)flags;
	return NULL;
}

TEST(without_libgit2_two_texts_are_not_merged)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	struct err err = { 0 };

	CHECK_EQ(try(&t, TREE(F("a", TEN)), TREE(F("a", TEN2)), TREE(F("a", TEN8)), NULL, &err),
		 -ENOTSUP);
	CHECK_HAS(err.msg, "'a'");
	CHECK_HAS(err.msg, "cannot load libgit2");
}

/* It tells how alike two files are, too: whether one was renamed is not guessed without it. */
TEST(without_libgit2_nothing_is_followed_that_was_renamed_and_changed)
{
	const struct leaf *base = TREE(F("a", "1"), F("gone", TEN));
	const struct leaf *ours = TREE(F("a", "2"), F("gone", TEN8));
	const struct leaf *theirs = TREE(F("a", "1"), F("c/d", TEN2));
	CLEANUP(trial_done) struct trial t = { 0 };
	struct err err = { 0 };

	CHECK_EQ(try(&t, base, ours, theirs, NULL, &err), -ENOTSUP);
	CHECK_HAS(err.msg, "cannot load libgit2");
	check_with(&(struct merge_options){ .no_renames = true }, base, ours, theirs,
		   "a 2\nc/d 1|2a|3|4|5|6|7|8|9|\ngone 1|2|3|4|5|6|7|8b|9|\n",
		   "edit/delete gone !\n");
}

TRIAL_MAIN("merge-nogit")
