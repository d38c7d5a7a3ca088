/*
 * Each test is a row of the tables in docs/design/merge.md, under the same name.
 */
#include "snapshot/merge/merge.h"

#include "tests/unit/snapshot/merge/merge-trial.h"

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

/* --- what it reports --------------------------------------------------------------------- */

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

TRIAL_MAIN("merge")
