/*
 * merge-trial.h - one merge of three lists of leaves, and what became of it.
 *
 * Each program has one store for all of its trials; it ends with TRIAL_MAIN().
 */
#pragma once

#include "tests/unit/snapshot/merge/merge-fixture.h"

#define TREE(...) ((const struct leaf[]){ __VA_ARGS__, LEAF_END })
#define NOTHING   ((const struct leaf[]){ LEAF_END })
#define NOW       ((int64_t)900 * 1000000000)

static struct store *store; /* of all trials of a program */

struct trial {
	struct object_id base, ours, theirs;
	struct merge merge;
};

static inline void trial_done(struct trial *t)
{
	merge_done(&t->merge);
}

static inline int try(struct trial *t, const struct leaf *base, const struct leaf *ours,
		      const struct leaf *theirs, const struct merge_options *options,
		      struct err *err)
{
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct merge_options o = { 0 };
	int r;

	if (!store)
		store = stock_open(test_path("store"), STORE_CREATE);
	t->base = leaf_tree(store, "base", base);
	t->ours = leaf_tree(store, "ours", ours);
	t->theirs = leaf_tree(store, "theirs", theirs);
	if (options)
		o = *options;
	o.now = NOW;
	b = stock_begin(store);
	r = merge_trees(b, &t->base, &t->ours, &t->theirs, &o, &t->merge, err);
	if (r < 0)
		return r;
	stock_name(b, REF_SNAPSHOT, "merged", &t->merge.root, REF_REPLACE);
	stock_commit(b);
	return 0;
}

static inline void check_tree(const struct object_id *root, const char *want)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT;

	describe_tree(store, root, &got);
	CHECK_STR(buf_str(&got), want);
}

static inline void check_with(const struct merge_options *options, const struct leaf *base,
			      const struct leaf *ours, const struct leaf *theirs, const char *tree,
			      const char *conflicts)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	CLEANUP(buf_done) struct buf got = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(try(&t, base, ours, theirs, options, &err), &err);
	describe_conflicts(&t.merge, &got);
	CHECK_STR(buf_str(&got), conflicts);
	check_tree(&t.merge.root, tree);
	stock_check_clean(store);
}

/* Stops where they conflict. */
static inline void check(const struct leaf *base, const struct leaf *ours,
			 const struct leaf *theirs, const char *tree, const char *conflicts)
{
	check_with(NULL, base, ours, theirs, tree, conflicts);
}

/* Conflict by conflict it becomes the same as by one wish for all. */
static inline void check_choices(const struct leaf *base, const struct leaf *ours,
				 const struct leaf *theirs, enum merge_on_conflict take,
				 const char *want)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	CLEANUP(batch_end_p) struct batch *b = NULL;
	struct err err = { 0 };

	CHECK_OK(try(&t, base, ours, theirs, NULL, &err), &err);
	b = stock_begin(store);
	merge_by_choices(b, &t.base, &t.ours, &t.theirs, &(struct merge_options){ .now = NOW },
			 take, &t.merge);
	stock_name(b, REF_SNAPSHOT, "merged", &t.merge.root, REF_REPLACE);
	stock_commit(b);
	check_tree(&t.merge.root, want);
}

/* With each of the three wishes that decide. */
static inline void check_wishes(const struct leaf *base, const struct leaf *ours,
				const struct leaf *theirs, const char *stop, const char *kind,
				const char *if_ours, const char *if_theirs)
{
	CLEANUP(buf_done) struct buf open = BUF_INIT;

	for (const char *p = kind; *p != '\0'; p++)
		CHECK_EQ(buf_printf(&open, *p == '\n' ? " !%c" : "%c", *p), 0);
	check(base, ours, theirs, stop, buf_str(&open));
	check_with(&(struct merge_options){ .on_conflict = MERGE_OURS }, base, ours, theirs,
		   if_ours, kind);
	check_with(&(struct merge_options){ .on_conflict = MERGE_THEIRS }, base, ours, theirs,
		   if_theirs, kind);
	check_choices(base, ours, theirs, MERGE_OURS, if_ours);
	check_choices(base, ours, theirs, MERGE_THEIRS, if_theirs);
}

/* Nine lines, and the same with one of them changed. */
#define TEN  "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
#define TEN2 "1\n2a\n3\n4\n5\n6\n7\n8\n9\n"
#define TEN3 "1\n2bb\n3\n4\n5\n6\n7\n8\n9\n"
#define TEN5 "1\n2\n3\n4\n5c\n6\n7\n8\n9\n"
#define TEN8 "1\n2\n3\n4\n5\n6\n7\n8b\n9\n"

#define TRIAL_MAIN(group)                    \
	int main(void)                       \
	{                                    \
		int r = test_run_all(group); \
                                             \
		store_close(store);          \
		return r;                    \
	}
