/*
 * Random changes of a real directory, links, holes, devices, attributes and times among them.
 * What only one side changed is what that side has, to the last name of a file; and what both
 * changed alike is no conflict.  plan.h says whether two roots are the same to anybody who looks.
 */
#include <stdio.h>

#include "snapshot/merge/merge.h"
#include "tests/lib/grove.h"

#define ROUNDS 40

static void check_merge(struct grove *g, const struct object_id *base, const struct object_id *ours,
			const struct object_id *theirs, const struct object_id *want)
{
	CLEANUP(batch_end_p) struct batch *b = stock_begin(g->s);
	CLEANUP(merge_done) struct merge m = { 0 };
	CLEANUP(plan_done) struct plan p = { 0 };
	struct err err = { 0 };

	CHECK_OK(merge_trees(b, base, ours, theirs, &(struct merge_options){ .now = 1 }, &m, &err),
		 &err);
	CHECK_EQ(m.n_conflicts, 0);
	stock_name(b, REF_SNAPSHOT, "merged", &m.root, REF_REPLACE);
	stock_commit(b);
	p = grove_plan(g, &m.root, want);
	for (size_t i = 0; i < p.n_files; i++)
		printf("# '%s': act %d, what %u\n", p.files[i].path, (int)p.files[i].act,
		       p.files[i].what);
	for (size_t i = 0; i < p.n_dirs; i++)
		if (p.dirs[i].what != 0)
			printf("# '%s/': what %u\n", p.dirs[i].path, p.dirs[i].what);
	CHECK(plan_is_empty(&p));
}

TEST(what_one_side_changed_is_what_that_side_has)
{
	CLEANUP(grove_done) struct grove g = grove_new("grove");
	struct test_rng rng = { test_seed() };
	struct object_id base, changed;

	for (unsigned i = 0; i < 60; i++)
		grove_change(&g, &rng);
	base = grove_capture(&g);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 15; i++)
			grove_change(&g, &rng);
		changed = grove_capture(&g);
		check_merge(&g, &base, &base, &changed, &changed);
		check_merge(&g, &base, &changed, &base, &changed);
		check_merge(&g, &base, &changed, &changed, &changed);
		base = changed;
	}
	stock_check_clean(g.s);
}

TEST_MAIN("merge-random")
