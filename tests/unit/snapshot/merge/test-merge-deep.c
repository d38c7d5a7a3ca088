/*
 * Trees of user-made depth: what a merge looks at is bounded by the longest path there can be.
 */
#include <errno.h>
#include <limits.h>

#include "snapshot/merge/merge.h"
#include "tests/unit/snapshot/merge/merge-trial.h"

#define DEEP 3000

/* A chain of so many directories "d", and a file beside it. */
static struct object_id deep_tree(const char *name, unsigned levels, const char *text)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(store);
	struct root root = { 0 };
	struct object_id id;
	struct err err = { 0 };

	for (unsigned i = 0; i <= levels; i++) {
		CLEANUP(tree_builder_free_p) struct tree_builder *t = NULL;
		const struct leaf dir = { .path = "d", .mode = S_IFDIR | 0755, .ino = i + 1 };
		struct tree_entry e = root.top;

		CHECK_OK(tree_builder_new(b, &t, &err), &err);
		e.name = "d";
		e.name_len = 1;
		if (i > 0)
			CHECK_OK(tree_builder_add(t, &e, &err), &err);
		if (i == levels) {
			e = leaf_entry(b, &(const struct leaf)F("good", text));
			e.name = "good";
			e.name_len = strlen(e.name);
			CHECK_OK(tree_builder_add(t, &e, &err), &err);
		}
		root.top = leaf_entry(b, &dir);
		root.top.form = TREE_DIR;
		root.top.nlink = i > 0 ? 3 : 2;
		CHECK_OK(tree_builder_finish(t, &root.top.id, &root.top.below, &err), &err);
	}
	root.top.name = ROOT_TOP;
	root.top.name_len = strlen(ROOT_TOP);
	CHECK_OK(root_put(b, &root, &id, &err), &err);
	stock_name(b, REF_SNAPSHOT, name, &id, REF_REPLACE);
	stock_commit(b);
	return id;
}

static bool count_all(const char *path, void *n)
{
	(void)path;
	++*(size_t *)n;
	return true;
}

static bool is_good(const char *path, void *unused)
{
	(void)unused;
	return strcmp(path, "good") == 0;
}

static int count_overlap(const char *path, enum merge_overlap overlap, void *n, struct err *err)
{
	(void)err;
	CHECK_STR(path, "good");
	CHECK_EQ(overlap, MERGE_OVERLAP);
	++*(size_t *)n;
	return 0;
}

TEST(a_tree_too_deep_to_be_named_is_refused_where_its_path_ends)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	size_t asked = 0, met = 0;
	const struct merge_options all = { .take = count_all, .take_ctx = &asked };
	const struct merge_options good = { .take = is_good };
	struct object_id base, flat, deep, other, fits;
	struct err err = { 0 };

	CHECK_OK(try(&t, NOTHING, NOTHING, NOTHING, NULL, &err), &err);
	base = deep_tree("deep-base", 0, "1");
	flat = deep_tree("flat", 0, "2");
	deep = deep_tree("deep", DEEP, "3");
	other = deep_tree("other", DEEP, "4");
	fits = deep_tree("fits", PATH_MAX / 2, "1"); /* a path of PATH_MAX - 1 bytes */

	b = stock_begin(store);
	CHECK_EQ(merge_trees(b, &base, &base, &deep, &all, &t.merge, &err), -ECANCELED);
	CHECK_HAS(err.msg, "so deep");
	CHECK(strlen(err.msg) < 300);
	CHECK(asked > 0 && asked <= PATH_MAX / 2 + 3); /* and no longer than it could be named */
	CHECK_EQ(merge_trees(b, &base, &deep, &flat, &(struct merge_options){ 0 }, &t.merge, &err),
		 -ECANCELED);

	/* What is left out, or only just has a name, is no hindrance. */
	CHECK_OK(merge_trees(b, &base, &base, &deep, &good, &t.merge, &err), &err);
	CHECK_EQ(t.merge.n_conflicts, 0);
	merge_done(&t.merge);
	t.merge = (struct merge){ 0 };
	CHECK_OK(merge_trees(b, &base, &flat, &fits, &(struct merge_options){ 0 }, &t.merge, &err),
		 &err);
	CHECK_EQ(t.merge.n_conflicts, 0);

	CHECK_OK(merge_overlap(store, &base, &deep, &other, count_overlap, &met, &err), &err);
	CHECK_EQ(met, 1);
}

TRIAL_MAIN("merge-deep")
