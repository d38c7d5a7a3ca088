/*
 * Each test is a row of the tables in docs/merge.md, under the same name.
 */
#include "snapshot/merge.h"

#include <errno.h>

#include "tests/unit/merge-fixture.h"

#define TREE(...) ((const struct leaf[]){ __VA_ARGS__, LEAF_END })
#define NOTHING   ((const struct leaf[]){ LEAF_END })
#define NOW       ((int64_t)900 * 1000000000)

static struct store *store; /* of all tests here */

struct trial {
	struct object_id base, ours, theirs;
	struct merge merge;
};

static void trial_done(struct trial *t)
{
	merge_done(&t->merge);
}

static int try(struct trial *t, const struct leaf *base, const struct leaf *ours,
	       const struct leaf *theirs, const struct merge_options *options, struct err *err)
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

static void check_tree(const struct object_id *root, const char *want)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT;

	describe_tree(store, root, &got);
	CHECK_STR(buf_str(&got), want);
}

static void check_with(const struct merge_options *options, const struct leaf *base,
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
static void check(const struct leaf *base, const struct leaf *ours, const struct leaf *theirs,
		  const char *tree, const char *conflicts)
{
	check_with(NULL, base, ours, theirs, tree, conflicts);
}

/* With each of the three wishes that decide. */
static void check_wishes(const struct leaf *base, const struct leaf *ours,
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
}

#define TEN  "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
#define TEN2 "1\n2a\n3\n4\n5\n6\n7\n8\n9\n"
#define TEN3 "1\n2bb\n3\n4\n5\n6\n7\n8\n9\n"
#define TEN5 "1\n2\n3\n4\n5c\n6\n7\n8\n9\n"
#define TEN8 "1\n2\n3\n4\n5\n6\n7\n8b\n9\n"

/* --- content ---------------------------------------------------------------------------- */

TEST(only_theirs_changed_it)
{
	check(TREE(F("f", "a")), TREE(F("f", "a")), TREE(F("f", "b")), "f b\n", "");
}

TEST(only_ours_changed_it)
{
	check(TREE(F("f", "a")), TREE(F("f", "b")), TREE(F("f", "a"), F("g", "")), "f b\ng \n", "");
}

TEST(both_changed_it_alike)
{
	check(TREE(F("f", "a")), TREE(F("f", "b")), TREE(F("f", "b")), "f b\n", "");
}

TEST(both_changed_other_lines)
{
	check(TREE(F("f", TEN)), TREE(F("f", TEN2)), TREE(F("f", TEN8)),
	      "f 1|2a|3|4|5|6|7|8b|9| @900\n", "");
}

TEST(both_changed_the_same_lines)
{
	check_wishes(TREE(F("f", "x\n" TEN)), TREE(F("f", "o\n" TEN5)), TREE(F("f", "t\n" TEN8)),
		     "f o|1|2|3|4|5c|6|7|8|9|\n", "content f 1\n",
		     "f o|1|2|3|4|5c|6|7|8b|9| @900\n", "f t|1|2|3|4|5c|6|7|8b|9| @900\n");
}

TEST(every_place_that_conflicts_is_counted)
{
	check(TREE(F("f", "x\n" TEN "x\n" TEN "x\n")), TREE(F("f", "a\n" TEN "a\n" TEN "a\n")),
	      TREE(F("f", "b\n" TEN "b\n" TEN "<<<<<<< conflict-0\n")),
	      "f a|1|2|3|4|5|6|7|8|9|a|1|2|3|4|5|6|7|8|9|a|\n", "content f 3 !\n");
}

TEST(markers_show_both)
{
	check_with(&(struct merge_options){ .on_conflict = MERGE_MARKERS,
					    .label_ours = "project",
					    .label_theirs = "clone 'x'" },
		   TREE(F("f", "a\nb\n")), TREE(F("f", "a\no\n")), TREE(F("f", "a\nt\n")),
		   "f a|<<<<<<< project|o|=======|t|>>>>>>> clone 'x'| @900\n", "content f 1\n");
}

TEST(markers_show_base_too_if_asked)
{
	const struct leaf *base = TREE(F("f", "a\nb\n")), *ours = TREE(F("f", "a\nx\no\n")),
			  *theirs = TREE(F("f", "a\nx\nt\n"));

	check_with(&(struct merge_options){ .on_conflict = MERGE_MARKERS,
					    .style = MERGE_STYLE_DIFF3,
					    .label_base = "before" },
		   base, ours, theirs,
		   "f a|<<<<<<< ours|x|o|||||||| before|b|=======|x|t|>>>>>>> theirs| @900\n",
		   "content f 1\n");
	check_with(
	    &(struct merge_options){ .on_conflict = MERGE_MARKERS, .style = MERGE_STYLE_ZDIFF3 },
	    base, ours, theirs,
	    "f a|x|<<<<<<< ours|o|||||||| base|b|=======|t|>>>>>>> theirs| @900\n",
	    "content f 1\n");
}

TEST(both_changed_what_is_no_text)
{
	check_wishes(TREE(F("f", "a\0\n", .len = 3)), TREE(F("f", "b\0\n", .len = 3)),
		     TREE(F("f", "c\0\n", .len = 3)), "f b0|\n", "binary f\n", "f b0|\n",
		     "f c0|\n");
	check_with(&(struct merge_options){ .on_conflict = MERGE_MARKERS },
		   TREE(F("f", "a\0\n", .len = 3)), TREE(F("f", "b\0\n", .len = 3)),
		   TREE(F("f", "c\n")), "f b0|\n", "binary f !\n");
}

TEST(both_changed_what_is_too_long_for_text)
{
	check(TREE(F("f", "a\n")), TREE(F("f", "", .hole = (64 << 20) + 1)), TREE(F("f", "b\n")),
	      "f 67108865 bytes\n", "binary f !\n");
}

TEST(a_nul_far_behind_the_start_is_text)
{
	static char a[9003], b[9003], c[9003];
	CLEANUP(trial_done) struct trial t = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = b[i] = c[i] = i % 10 == 9 ? '\n' : 'x';
	a[9000] = b[9000] = c[9000] = '\0';
	b[0] = 'o';
	c[5000] = 't';
	CHECK_OK(try(&t, TREE(F("f", a, .len = sizeof(a))), TREE(F("f", b, .len = sizeof(a))),
		     TREE(F("f", c, .len = sizeof(a))), NULL, &err),
		 &err);
	CHECK_EQ(t.merge.n_conflicts, 0);
	CHECK_EQ(t.merge.n_merged, 1);
}

/* --- files that came or went ------------------------------------------------------------- */

TEST(only_theirs_added_it)
{
	check(NOTHING, NOTHING, TREE(F("d/f", "a")), "d/f a\n", "");
}

TEST(both_added_it_alike)
{
	check(NOTHING, TREE(F("f", "a")), TREE(F("f", "a")), "f a\n", "");
}

TEST(both_added_it_otherwise)
{
	check_wishes(NOTHING, TREE(F("f", "1\n2\n")), TREE(F("f", "1\n3\n")), "f 1|2|\n",
		     "add/add f 1\n", "f 1|2|\n", "f 1|3|\n");
	check_with(&(struct merge_options){ .on_conflict = MERGE_MARKERS }, NOTHING,
		   TREE(F("f", "1\n2\n")), TREE(F("f", "1\n3\n")),
		   "f 1|<<<<<<< ours|2|=======|3|>>>>>>> theirs| @900\n", "add/add f 1\n");
}

TEST(only_theirs_removed_it)
{
	check(TREE(F("f", "a"), F("g", "")), TREE(F("f", "a"), F("g", "")), TREE(F("g", "")),
	      "g \n", "");
}

TEST(both_removed_it)
{
	check(TREE(F("f", "a"), F("g", "")), TREE(F("g", "")), TREE(F("g", "")), "g \n", "");
}

TEST(ours_changed_what_theirs_removed)
{
	check_wishes(TREE(F("f", "a")), TREE(F("f", "b")), NOTHING, "f b\n", "edit/delete f\n",
		     "f b\n", "");
	check_wishes(TREE(F("f", "a")), TREE(F("f", "a", .mode = S_IFREG | 0755)), NOTHING,
		     "f a 0755\n", "edit/delete f\n", "f a 0755\n", "");
}

TEST(ours_touched_what_theirs_removed)
{
	check(TREE(F("f", "a")), TREE(F("f", "a", .mtime = 200)), NOTHING, "", "");
}

TEST(theirs_changed_what_ours_removed)
{
	check_wishes(TREE(F("d/f", "a")), NOTHING, TREE(F("d/f", "b")), "", "delete/edit d/f\n", "",
		     "d/f b\n");
}

TEST(theirs_touched_what_ours_removed)
{
	check(TREE(F("f", "a")), NOTHING, TREE(F("f", "a", .mtime = 200)), "", "");
}

/* --- directories ------------------------------------------------------------------------ */

TEST(theirs_added_a_directory)
{
	check(NOTHING, NOTHING, TREE(D("d/e", 0700), F("d/f", "a")), "d/e/ 0700\nd/f a\n", "");
}

TEST(both_added_a_directory)
{
	check(NOTHING, TREE(D("d", 0700), F("d/o", "o")), TREE(D("d", 0750), F("d/t", "t")),
	      "d/ 0700\nd/o o\nd/t t\n", "");
}

TEST(theirs_removed_a_directory)
{
	check(TREE(F("d/e/f", "a"), F("d/g", "a")), TREE(F("d/e/f", "a"), F("d/g", "a")), NOTHING,
	      "", "");
}

TEST(ours_added_to_a_directory_that_theirs_removed)
{
	check(TREE(F("d/e/f", "a")), TREE(F("d/e/f", "a"), F("d/e/new", "n")), NOTHING,
	      "d/e/new n\n", "");
}

TEST(theirs_added_to_a_directory_that_ours_removed)
{
	check(TREE(D("d", 0700), F("d/f", "a")), NOTHING,
	      TREE(D("d", 0700), F("d/f", "a"), F("d/new", "n")), "d/ 0700\nd/new n\n", "");
}

TEST(theirs_changed_attributes_of_a_directory)
{
	check(TREE(D("d", 0755), F("d/f", "a")), TREE(D("d", 0755), F("d/f", "b")),
	      TREE(D("d", 0700, .uid = 7, .gid = 8), F("d/f", "a")), "d/ 0700 7:8\nd/f b\n", "");
}

TEST(theirs_changed_attributes_of_a_directory_that_ours_removed)
{
	check(TREE(D("d", 0755)), NOTHING, TREE(D("d", 0700)), "", "");
}

/* --- directories and files --------------------------------------------------------------- */

TEST(theirs_made_a_directory_of_a_file)
{
	check(TREE(F("p", "a")), TREE(F("p", "a")), TREE(F("p/x", "x")), "p/x x\n", "");
}

TEST(theirs_made_a_file_of_a_directory)
{
	check(TREE(F("p/x", "x")), TREE(F("p/x", "x")), TREE(F("p", "a")), "p a\n", "");
}

TEST(ours_changed_a_file_that_theirs_made_a_directory)
{
	check_wishes(TREE(F("p", "a")), TREE(F("p", "b")), TREE(F("p/x", "x"), F("p/y", "y")),
		     "p b\n", "directory/file p\n", "p b\n", "p/x x\np/y y\n");
}

TEST(ours_added_to_a_directory_that_theirs_made_a_file)
{
	check_wishes(TREE(F("p/x", "x")), TREE(F("p/x", "x"), F("p/y", "y")), TREE(F("p", "a")),
		     "p/y y\n", "directory/file p\n", "p/y y\n", "p a\n");
}

TEST(theirs_changed_a_file_that_ours_made_a_directory)
{
	check_wishes(TREE(F("p", "a")), TREE(F("p/x", "x")), TREE(F("p", "b")), "p/x x\n",
		     "directory/file p\n", "p/x x\n", "p b\n");
}

TEST(theirs_added_to_a_directory_that_ours_made_a_file)
{
	check_wishes(TREE(F("p/x", "x")), TREE(F("p", "a")), TREE(F("p/x", "x"), F("p/y", "y")),
		     "p a\n", "directory/file p\n", "p a\n", "p/y y\n");
}

TEST(ours_added_a_file_where_theirs_added_a_directory)
{
	check_wishes(NOTHING, TREE(F("p", "a")), TREE(F("p/x", "x"), F("p/q/y", "y")), "p a\n",
		     "directory/file p\n", "p a\n", "p/q/y y\np/x x\n");
}

TEST(ours_added_a_directory_where_theirs_added_a_file)
{
	check_wishes(NOTHING, TREE(F("p/x", "x"), F("p/h", "h", .link = 5), F("h", "h", .link = 5)),
		     TREE(F("p", "a")), "h h x2\np/h h x2\np/x x\n", "directory/file p\n",
		     "h h x2\np/h h x2\np/x x\n", "h h x1\np a\n");
}

/* --- types -------------------------------------------------------------------------------- */

TEST(theirs_changed_the_type)
{
	check(TREE(F("f", "a")), TREE(F("f", "a")), TREE(SYM("f", "to")), "f -> to\n", "");
}

TEST(ours_changed_it_and_theirs_its_type)
{
	check_wishes(TREE(F("f", "a")), TREE(F("f", "b")), TREE(SYM("f", "to")), "f b\n",
		     "type f\n", "f b\n", "f -> to\n");
	check_wishes(TREE(F("f", "a")), TREE(F("f", "a", .mode = S_IFREG | 0755)),
		     TREE(SYM("f", "to")), "f a 0755\n", "type f\n", "f a 0755\n", "f -> to\n");
}

TEST(both_changed_where_a_symlink_leads)
{
	check_wishes(TREE(SYM("l", "a")), TREE(SYM("l", "b")), TREE(SYM("l", "c")), "l -> b\n",
		     "symlink l\n", "l -> b\n", "l -> c\n");
	check(TREE(SYM("l", "a")), TREE(SYM("l", "a")), TREE(SYM("l", "c")), "l -> c\n", "");
}

TEST(both_changed_a_device)
{
	check_wishes(TREE(F("d", NULL, .mode = S_IFBLK | 0600, .rdev = 1)),
		     TREE(F("d", NULL, .mode = S_IFBLK | 0600, .rdev = 2)),
		     TREE(F("d", NULL, .mode = S_IFBLK | 0600, .rdev = 3)), "d special 2\n",
		     "binary d\n", "d special 2\n", "d special 3\n");
}

TEST(theirs_added_a_fifo)
{
	check(NOTHING, NOTHING, TREE(F("p", NULL, .mode = S_IFIFO | 0600)), "p special 0\n", "");
}

/* --- attributes --------------------------------------------------------------------------- */

TEST(content_and_mode_are_merged_apart)
{
	check(TREE(F("f", "a")), TREE(F("f", "b")), TREE(F("f", "a", .mode = S_IFREG | 0755)),
	      "f b 0755\n", "");
	check(TREE(F("f", "a")), TREE(F("f", "a", .mode = S_IFREG | 0755)), TREE(F("f", "b")),
	      "f b 0755\n", "");
}

TEST(both_changed_the_mode)
{
	check_wishes(TREE(F("f", "a")), TREE(F("f", "a", .mode = S_IFREG | 0600)),
		     TREE(F("f", "a", .mode = S_IFREG | 0755)), "f a 0600\n", "mode f\n",
		     "f a 0600\n", "f a 0755\n");
}

TEST(both_changed_the_owner)
{
	check_wishes(TREE(F("f", "a")), TREE(F("f", "a", .uid = 7)), TREE(F("f", "a", .uid = 8)),
		     "f a 7:1000\n", "owner f\n", "f a 7:1000\n", "f a 8:1000\n");
	check(TREE(F("f", "a")), TREE(F("f", "a", .uid = 7)), TREE(F("f", "a", .gid = 8)),
	      "f a 7:8\n", "");
}

TEST(both_changed_other_attributes)
{
	check(TREE(F("f", "a", .xattr = "user.a=1 user.b=1 user.c=1")),
	      TREE(F("f", "a", .xattr = "user.a=2 user.b=1 user.c=1 user.o=1")),
	      TREE(F("f", "a", .xattr = "user.a=1 user.b=2 user.t=1")),
	      "f a user.a=2 user.b=2 user.o=1 user.t=1\n", "");
}

TEST(both_changed_the_same_attribute)
{
	check_wishes(TREE(F("f", "a", .xattr = "user.a=1")),
		     TREE(F("f", "a", .xattr = "user.a=2 user.o=1")),
		     TREE(F("f", "a", .xattr = "user.a=3")), "f a user.a=2 user.o=1\n",
		     "xattrs f\n", "f a user.a=2 user.o=1\n", "f a user.a=3 user.o=1\n");
}

TEST(the_time_follows_the_bytes)
{
	const struct leaf *base = TREE(F("f", TEN, .mtime = 1));

	check(base, base, TREE(F("f", "t", .mtime = 2)), "f t @2\n", "");
	check(base, TREE(F("f", "o", .mtime = 3)), TREE(F("f", TEN, .mtime = 4)), "f o @3\n", "");
	check(base, TREE(F("f", "x", .mtime = 6)), TREE(F("f", "x", .mtime = 5)), "f x @6\n", "");
	check(base, base, TREE(F("f", TEN, .mtime = 7)), "f 1|2|3|4|5|6|7|8|9| @7\n", "");
	check(base, TREE(F("f", TEN2, .mtime = 8)), TREE(F("f", TEN8, .mtime = 9)),
	      "f 1|2a|3|4|5|6|7|8b|9| @900\n", "");
}

/* --- renames ------------------------------------------------------------------------------ */

TEST(theirs_renamed_what_ours_changed)
{
	check(TREE(F("a", TEN)), TREE(F("a", TEN2)), TREE(F("d/b", TEN)),
	      "d/b 1|2a|3|4|5|6|7|8|9|\n", "");
	check(TREE(F("a", TEN)), TREE(F("a", TEN2)), TREE(F("d/b", TEN8)),
	      "d/b 1|2a|3|4|5|6|7|8b|9| @900\n", "");
}

TEST(ours_renamed_what_theirs_changed)
{
	check(TREE(F("a", TEN)), TREE(F("b", TEN)), TREE(F("a", TEN8)), "b 1|2|3|4|5|6|7|8b|9|\n",
	      "");
	check(TREE(F("a", TEN)), TREE(F("b", TEN2)), TREE(F("a", TEN8)),
	      "b 1|2a|3|4|5|6|7|8b|9| @900\n", "");
}

TEST(both_renamed_it_alike)
{
	check(TREE(F("a", TEN)), TREE(F("b", TEN2)), TREE(F("b", TEN8)),
	      "b 1|2a|3|4|5|6|7|8b|9| @900\n", "");
}

TEST(each_renamed_it_otherwise)
{
	const struct leaf *base = TREE(F("a", TEN)), *ours = TREE(F("b", TEN2)),
			  *theirs = TREE(F("c", TEN));

	check(base, ours, theirs, "b 1|2a|3|4|5|6|7|8|9|\n", "rename/rename b !\n");
	check_with(&(struct merge_options){ .on_conflict = MERGE_OURS }, base, ours, theirs,
		   "b 1|2a|3|4|5|6|7|8|9|\n", "rename/rename b\n");
	check_with(&(struct merge_options){ .on_conflict = MERGE_THEIRS }, base, ours, theirs,
		   "c 1|2a|3|4|5|6|7|8|9|\n", "rename/rename c\n");
}

#define OTHER "k\nl\nm\nn\no\np\nq\nr\ns\n"

TEST(two_files_were_renamed_to_one_name)
{
	const char *ours = "b k|l|m|n|o|p|q|r|s||\nc 1|2|3|4|5|6|7|8|9||\n";

	check_wishes(TREE(F("a", TEN), F("b", OTHER)), TREE(F("b", OTHER "\n"), F("c", TEN)),
		     TREE(F("a", TEN "\n"), F("c", OTHER)), ours, "rename/rename c\n", ours,
		     "a 1|2|3|4|5|6|7|8|9||\nc k|l|m|n|o|p|q|r|s||\n");
}

TEST(theirs_renamed_what_ours_removed)
{
	check_wishes(TREE(F("a", TEN)), NOTHING, TREE(F("b", TEN)), "", "rename/delete b\n", "",
		     "b 1|2|3|4|5|6|7|8|9|\n");
}

TEST(ours_renamed_what_theirs_removed)
{
	check_wishes(TREE(F("a", TEN)), TREE(F("b", TEN)), NOTHING, "b 1|2|3|4|5|6|7|8|9|\n",
		     "rename/delete b\n", "b 1|2|3|4|5|6|7|8|9|\n", "");
}

TEST(theirs_renamed_what_ours_replaced)
{
	check_wishes(TREE(F("a", TEN)), TREE(SYM("a", "x")), TREE(F("b", TEN)), "a -> x\n",
		     "rename/delete b\n", "a -> x\n", "a -> x\nb 1|2|3|4|5|6|7|8|9|\n");
}

TEST(ours_renamed_what_theirs_replaced)
{
	check_wishes(TREE(F("a", TEN)), TREE(F("b", TEN)), TREE(SYM("a", "x")),
		     "a -> x\nb 1|2|3|4|5|6|7|8|9|\n", "rename/delete b\n",
		     "a -> x\nb 1|2|3|4|5|6|7|8|9|\n", "a -> x\n");
	check_wishes(TREE(F("a", TEN)), TREE(F("b", TEN)), TREE(F("a/x", "x")),
		     "a/x x\nb 1|2|3|4|5|6|7|8|9|\n", "rename/delete b\n",
		     "a/x x\nb 1|2|3|4|5|6|7|8|9|\n", "a/x x\n");
}

TEST(theirs_renamed_to_a_name_that_ours_added)
{
	check_wishes(TREE(F("a", TEN)), TREE(F("a", TEN2), F("b", "new\n")), TREE(F("b", TEN)),
		     "a 1|2a|3|4|5|6|7|8|9|\nb new|\n", "rename/add b\n",
		     "a 1|2a|3|4|5|6|7|8|9|\nb new|\n", "b 1|2a|3|4|5|6|7|8|9|\n");
}

TEST(ours_renamed_to_a_name_that_theirs_added)
{
	check_wishes(TREE(F("a", TEN)), TREE(F("b", TEN)), TREE(F("a", TEN8), F("b", "new\n")),
		     "b 1|2|3|4|5|6|7|8b|9|\n", "rename/add b\n", "b 1|2|3|4|5|6|7|8b|9|\n",
		     "a 1|2|3|4|5|6|7|8b|9|\nb new|\n");
}

TEST(theirs_added_to_a_directory_that_ours_renamed)
{
	check(TREE(F("d/a", TEN), F("d/b", OTHER)), TREE(F("e/a", TEN), F("e/b", OTHER)),
	      TREE(F("d/a", TEN), F("d/b", OTHER), F("d/new", "n"), F("d/sub/deep", "x")),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/b k|l|m|n|o|p|q|r|s|\ne/new n\ne/sub/deep x\n", "");
}

TEST(ours_added_to_a_directory_that_theirs_renamed)
{
	check(TREE(F("d/a", TEN), F("d/b", OTHER)),
	      TREE(F("d/a", TEN), F("d/b", OTHER), F("d/new", "n"), F("d/sub/deep", "x")),
	      TREE(F("e/a", TEN), F("e/b", OTHER)),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/b k|l|m|n|o|p|q|r|s|\ne/new n\ne/sub/deep x\n", "");
}

TEST(ours_renamed_into_a_directory_that_theirs_renamed)
{
	check(TREE(F("d/a", TEN), F("d/b", TEN), F("c", OTHER)),
	      TREE(F("d/a", TEN), F("d/b", TEN), F("d/c", OTHER)),
	      TREE(F("e/a", TEN), F("e/b", TEN), F("c", OTHER)),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/b 1|2|3|4|5|6|7|8|9|\ne/c k|l|m|n|o|p|q|r|s|\n", "");
	check(TREE(F("d/a", TEN), F("c", OTHER)), TREE(F("d/a", TEN), F("d/c", OTHER)),
	      TREE(F("e/a", TEN), F("c", OTHER "t\n")),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/c k|l|m|n|o|p|q|r|s|t|\n", "");
}

TEST(theirs_renamed_into_a_directory_that_ours_renamed)
{
	check(TREE(F("d/a", TEN), F("c", OTHER)), TREE(F("e/a", TEN), F("c", OTHER "o\n")),
	      TREE(F("d/a", TEN), F("d/c", OTHER)),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/c k|l|m|n|o|p|q|r|s|o|\n", "");
}

TEST(each_renamed_it_otherwise_but_a_directory_leads_there)
{
	check(TREE(F("d/a", TEN), F("c", OTHER)), TREE(F("e/a", TEN), F("e/c", OTHER)),
	      TREE(F("d/a", TEN), F("d/c", OTHER "t\n")),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/c k|l|m|n|o|p|q|r|s|t|\n", "");
}

TEST(what_most_of_a_directory_says_counts)
{
	check(TREE(F("d/a", TEN), F("d/b", OTHER), F("d/s/c", "third\n")),
	      TREE(F("e/a", TEN), F("f/b", OTHER), F("e/s/c", "third\n")),
	      TREE(F("d/a", TEN), F("d/b", OTHER), F("d/s/c", "third\n"), F("d/new", "n")),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/new n\ne/s/c third|\nf/b k|l|m|n|o|p|q|r|s|\n", "");
}

TEST(theirs_added_to_a_directory_that_ours_renamed_and_added_to)
{
	check_wishes(TREE(F("d/a", TEN)), TREE(F("e/a", TEN), F("e/new", "o")),
		     TREE(F("d/a", TEN), F("d/new", "t")), "e/a 1|2|3|4|5|6|7|8|9|\ne/new o\n",
		     "rename/add e/new\n", "e/a 1|2|3|4|5|6|7|8|9|\ne/new o\n",
		     "e/a 1|2|3|4|5|6|7|8|9|\ne/new t\n");
}

TEST(theirs_added_to_a_directory_that_ours_renamed_and_to_that)
{
	check(TREE(F("d/a", TEN)), TREE(F("e/a", TEN)),
	      TREE(F("d/a", TEN), F("d/new", "t"), F("e/new", "u")),
	      "d/new t\ne/a 1|2|3|4|5|6|7|8|9|\ne/new u\n", "");
}

TEST(a_directory_whose_files_went_two_ways_was_not_renamed)
{
	check(TREE(F("d/a", TEN), F("d/b", OTHER)), TREE(F("e/a", TEN), F("f/b", OTHER)),
	      TREE(F("d/a", TEN), F("d/b", OTHER), F("d/new", "n")),
	      "d/new n\ne/a 1|2|3|4|5|6|7|8|9|\nf/b k|l|m|n|o|p|q|r|s|\n", "");
}

TEST(renames_are_not_followed_if_not_wanted)
{
	check_with(&(struct merge_options){ .no_renames = true }, TREE(F("a", TEN)),
		   TREE(F("a", TEN2)), TREE(F("b", TEN)),
		   "a 1|2a|3|4|5|6|7|8|9|\nb 1|2|3|4|5|6|7|8|9|\n", "edit/delete a !\n");
}

TEST(theirs_changed_the_case_of_a_name)
{
	check(TREE(F("readme", TEN)), TREE(F("readme", TEN2)), TREE(F("README", TEN)),
	      "README 1|2a|3|4|5|6|7|8|9|\n", "");
}

TEST(names_of_any_bytes_are_merged)
{
	check(TREE(F("new\nline", TEN), F("\xff/\x01", "a")),
	      TREE(F("new\nline", TEN2), F("\xff/\x01", "a")),
	      TREE(F("new\nline", TEN8), F("\xff/\x01", "b")),
	      "new\nline 1|2a|3|4|5|6|7|8b|9| @900\n\xff/\x01 b\n", "");
}

/* --- names of one file ---------------------------------------------------------------------- */

TEST(theirs_changed_a_file_with_several_names)
{
	const struct leaf *base = TREE(F("a", "1", .link = 5), F("b", "1", .link = 5));

	check(base, base, TREE(F("a", "2", .link = 5), F("b", "2", .link = 5)), "a 2 x2\nb 2 x2\n",
	      "");
	check(base, TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5)),
	      TREE(F("a", "2", .link = 5), F("b", "2", .link = 5)), "a 2 x3\nb 2 x3\nc 2 x3\n", "");
}

TEST(both_changed_a_file_with_several_names)
{
	check(TREE(F("a", TEN, .link = 5), F("b", TEN, .link = 5)),
	      TREE(F("a", TEN2, .link = 5), F("b", TEN2, .link = 5)),
	      TREE(F("a", TEN8, .link = 5), F("b", TEN8, .link = 5)),
	      "a 1|2a|3|4|5|6|7|8b|9| @900 x2\nb 1|2a|3|4|5|6|7|8b|9| @900 x2\n", "");
	check(TREE(F("a", "1\n", .link = 5), F("b", "1\n", .link = 5)),
	      TREE(F("a", "2\n", .link = 5), F("b", "2\n", .link = 5)),
	      TREE(F("a", "3\n", .link = 5), F("b", "3\n", .link = 5)), "a 2| x2\nb 2| x2\n",
	      "content a 1 !\n");
}

TEST(theirs_gave_a_file_another_name)
{
	check(TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("d/c", "1", .link = 5)),
	      "a 1 x3\nb 1 x3\nd/c 1 x3\n", "");
	check(TREE(F("a", TEN, .link = 0)), TREE(F("a", TEN2)),
	      TREE(F("a", TEN, .link = 5), F("b", TEN, .link = 5)),
	      "a 1|2a|3|4|5|6|7|8|9| x2\nb 1|2a|3|4|5|6|7|8|9| x2\n", "");
}

TEST(theirs_changed_a_file_and_one_of_its_names)
{
	const struct leaf *base = TREE(F("b", "1", .link = 5), F("c", "1", .link = 5));
	const struct leaf *kept = TREE(F("a", "2", .link = 5), F("b", "2", .link = 5));
	const struct leaf *none = TREE(F("a", "2", .link = 5), F("z", "2", .link = 5));

	/* Names that come before the one that stays, and names of which none stays. */
	check(base, base, kept, "a 2 x2\nb 2 x2\n", "");
	check(base, base, none, "a 2 x2\nz 2 x2\n", "");
	check(base,
	      TREE(F("b", "1", .link = 5, .mode = S_IFREG | 0600),
		   F("c", "1", .link = 5, .mode = S_IFREG | 0600)),
	      kept, "a 2 0600 x3\nb 2 0600 x3\nc 2 0600 x3\n", "edit/delete c !\n");
	/* A file by itself that theirs made a name of that one. */
	check(TREE(F("b", "1", .link = 5), F("c", "1", .link = 5), F("a", "x"), F("z", "x")),
	      TREE(F("b", "1", .link = 5), F("c", "1", .link = 5), F("a", "x"), F("z", "x")), none,
	      "a 2 x2\nz 2 x2\n", "");
}

TEST(theirs_joined_a_name_to_a_file_that_has_another_number_in_ours)
{
	check(TREE(F("b", "x"), F("c", "1", .link = 5), F("z", "1", .link = 5)),
	      TREE(F("b", "x"), F("c", "1", .link = 7), F("z", "1", .link = 7)),
	      TREE(F("b", "2", .link = 5), F("z", "2", .link = 5)), "b 2 x2\nz 2 x2\n", "");
}

TEST(theirs_added_a_file_with_several_names)
{
	check(NOTHING, TREE(F("x", "x", .link = 9), F("y", "x", .link = 9)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      "a 1 x2\nb 1 x2\nx x x2\ny x x2\n", "");
}

TEST(a_number_that_both_gave_to_a_new_file_is_two_files)
{
	check(NOTHING, TREE(F("x", "x", .link = 5), F("y", "x", .link = 5)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      "a 1 x2\nb 1 x2\nx x x2\ny x x2\n", "");
}

TEST(a_number_that_ours_gave_again_is_another_file)
{
	check(TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      TREE(F("x", "x", .link = 5), F("y", "x", .link = 5)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5)),
	      "c 1\nx x x2\ny x x2\n", "");
}

TEST(theirs_removed_one_of_several_names)
{
	const struct leaf *base =
	    TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5));

	check(base, base, TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)), "a 1 x2\nb 1 x2\n",
	      "");
	check(base, base, NOTHING, "", "");
}

TEST(theirs_parted_the_names_of_a_file)
{
	const struct leaf *base = TREE(F("a", "1", .link = 5), F("b", "1", .link = 5));

	check(base, base, TREE(F("a", "2"), F("b", "1")), "a 2\nb 1\n", "");
}

TEST(ours_parted_the_names_of_a_file_that_theirs_changed)
{
	check(TREE(F("a", TEN, .link = 5), F("b", TEN, .link = 5)), TREE(F("a", TEN2), F("b", TEN)),
	      TREE(F("a", TEN8, .link = 5), F("b", TEN8, .link = 5)),
	      "a 1|2a|3|4|5|6|7|8b|9| @900\nb 1|2|3|4|5|6|7|8b|9|\n", "");
}

/* --- taking part ------------------------------------------------------------------------ */

static bool in_src(const char *path, void *ctx)
{
	(void)ctx;
	return strncmp(path, "src/", 4) == 0;
}

TEST(only_what_is_taken_takes_part)
{
	check_with(&(struct merge_options){ .take = in_src },
		   TREE(F("src/a", "1"), F("lib/b", "1"), F("src/gone", "1"), F("lib/gone", "1")),
		   TREE(F("src/a", "1"), F("lib/b", "2"), F("src/gone", "1"), F("lib/gone", "1")),
		   TREE(D("src", 0700), F("src/a", "3"), F("lib/b", "3"), F("src/new/n", "n"),
			F("lib/new", "n")),
		   "lib/b 2\nlib/gone 1\nsrc/a 3\nsrc/new/n n\n", "");
}

TEST(one_of_several_names_that_is_taken_is_a_file_by_itself)
{
	check_with(&(struct merge_options){ .take = in_src }, NOTHING, NOTHING,
		   TREE(D("src", 0700), F("src/a", "1", .link = 5), F("lib/a", "1", .link = 5)),
		   "src/ 0700\nsrc/a 1\n", "");
}

TEST(half_a_rename_is_what_it_is_by_itself)
{
	check_with(&(struct merge_options){ .take = in_src }, TREE(F("src/a", TEN)),
		   TREE(F("src/a", TEN2)), TREE(F("lib/a", TEN)), "src/a 1|2a|3|4|5|6|7|8|9|\n",
		   "edit/delete src/a !\n");
}

/* --- what is told ------------------------------------------------------------------------- */

TEST(changes_are_told_against_ours)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	CLEANUP(buf_done) struct buf got = BUF_INIT;
	struct err err = { 0 };

	CHECK_OK(try(&t,
		     TREE(F("a", "1"), F("b", "1"), F("old/x", "1"), F("t", "1"),
			  F("h", "1", .link = 5), F("i", "1", .link = 5)),
		     TREE(F("a", "1"), F("b", "2"), F("old/x", "1"), F("t", "1"),
			  F("h", "1", .link = 5), F("i", "1", .link = 5)),
		     TREE(F("a", "3"), F("b", "2"), F("new/y", "1"), F("t", "1", .mtime = 7),
			  F("h", "2", .link = 5), F("i", "2", .link = 5)),
		     NULL, &err),
		 &err);
	describe_changes(&t.merge, &got);
	CHECK_STR(buf_str(&got), "M a\nM h\nM i\nA new\nA new/y\nD old\nD old/x\n");
}

TEST(a_conflict_names_all_three_sides)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	const struct merge_conflict *c;
	struct err err = { 0 };

	CHECK_OK(try(&t, TREE(F("a", TEN)), TREE(F("b", TEN2)), TREE(F("a", TEN3)), NULL, &err),
		 &err);
	CHECK_EQ(t.merge.n_conflicts, 1);
	c = &t.merge.conflicts[0];
	CHECK_EQ(c->kind, MERGE_CONTENT);
	CHECK_STR(c->path, "b");
	CHECK_STR(c->base.path, "a");
	CHECK_STR(c->ours.path, "b");
	CHECK_STR(c->theirs.path, "a");
	CHECK_EQ(c->base.entry.size, strlen(TEN));
	CHECK_EQ(c->ours.entry.size, strlen(TEN2));
	CHECK_EQ(c->theirs.entry.size, strlen(TEN3));
}

TEST(where_theirs_changed_nothing_the_tree_is_that_of_ours)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	const struct leaf *base = TREE(F("a", "1"), F("h", "1", .link = 5), F("i", "1", .link = 5));
	struct err err = { 0 };

	CHECK_OK(try(&t, base, TREE(F("a", "2"), F("c/d", "2")), base, NULL, &err), &err);
	CHECK(object_id_equal(&t.merge.root, &t.ours));
	CHECK_EQ(t.merge.n_changes, 0);
}

TEST(where_ours_changed_nothing_the_tree_is_that_of_theirs)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	const struct leaf *base = TREE(F("a", "1"), F("b/c", "1"), F("h", "1", .link = 5),
				       F("i", "1", .link = 5), D("e", 0711), SYM("l", "x"));
	struct err err = { 0 };

	CHECK_OK(try(&t, base, base,
		     TREE(F("a/x", "1"), F("b", "1"), F("h", "2", .link = 6),
			  F("k", "2", .link = 6), D("e", 0700), D("f", 01777), SYM("l", "y"),
			  F("n/o/p", "q", .xattr = "user.x=y")),
		     NULL, &err),
		 &err);
	CHECK(object_id_equal(&t.merge.root, &t.theirs));
	CHECK_EQ(t.merge.n_conflicts, 0);
}

/* --- overlap -------------------------------------------------------------------------------- */

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

int main(void)
{
	int r = test_run_all("merge");

	store_close(store);
	return r;
}
