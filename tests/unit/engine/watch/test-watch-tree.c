#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/watch/watch-i.h"
#include "tests/lib/test.h"

/* More than it watches at once, and more events than the kernel keeps for it. */
#define TIMES 100002

TEST(watches_that_were_left_do_not_count_though_nothing_is_read)
{
	AUTO_FREE char *one = strdup(test_path("one")), *other = strdup(test_path("other"));
	struct watch_tree *t = NULL;
	struct err err = { 0 };

	CHECK(mkdir(one, 0700) == 0 && mkdir(other, 0700) == 0);
	CHECK_OK(tree_open(test_path("store"), &t, &err), &err);
	CHECK_OK(tree_add(t, one, true, 0, &err), &err);
	for (int i = 0; i < TIMES; i++) {
		CHECK(renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0);
		CHECK(tree_is_other(t, 0));
		CHECK_OK(tree_find(t, 0, &err), &err);
		CHECK(!tree_is_partial(t, 0) && !tree_is_other(t, 0));
	}
	tree_free(t);
}

TEST_MAIN("watch-tree")
