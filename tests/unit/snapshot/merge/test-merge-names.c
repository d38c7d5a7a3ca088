/*
 * Files that have another name than before, or several.  Each test is a row of the tables in docs/design/merge.md, under the same name.
 */
#include "snapshot/merge/merge.h"

#include "tests/unit/snapshot/merge/merge-trial.h"

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

TEST(theirs_made_a_directory_where_ours_renamed_to)
{
	const char *ours = "d/s 1|2|3|4|5|6|7|8b|9|\n";

	check_wishes(TREE(F("e/s", TEN)), TREE(F("d/s", TEN)),
		     TREE(F("e/s", TEN8), F("d/s/a", "x")), ours, "directory/file d/s\n", ours,
		     "d/s/a x\ne/s 1|2|3|4|5|6|7|8b|9|\n");
	/* It was one, and has more in it by now. */
	check_with(&(struct merge_options){ .on_conflict = MERGE_THEIRS },
		   TREE(F("e/s", TEN), F("d/s/a", "y")), TREE(F("d/s", TEN)),
		   TREE(F("e/s", TEN8), F("d/s/a", "x")), "d/s/a x\ne/s 1|2|3|4|5|6|7|8b|9|\n",
		   "directory/file d/s\ndelete/edit d/s/a\n");
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

/* A directory that is made for it shows in the listing of the one above (describe_dir()). */
TEST(ours_added_to_a_directory_that_theirs_removed_in_one_that_theirs_renamed)
{
	check(TREE(F("d/a", TEN), F("d/b", OTHER), F("d/sub/x", "x"), F("d/too/x", "x")),
	      TREE(F("d/a", TEN), F("d/b", OTHER), F("d/sub/x", "x"), F("d/sub/new", "n"),
		   F("d/too/x", "x"), F("d/too/new", "o")),
	      TREE(F("e/a", TEN), F("e/b", OTHER)),
	      "e/a 1|2|3|4|5|6|7|8|9|\ne/b k|l|m|n|o|p|q|r|s|\ne/sub/ @900\ne/sub/new n\n"
	      "e/too/ @900\ne/too/new o\n",
	      "");
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

TEST(theirs_joined_a_name_to_a_file_that_ours_changed)
{
	const struct leaf *base = TREE(F("a", "1", .link = 5), F("b", "1", .link = 5));
	const struct leaf *ours = TREE(F("a", "2", .link = 5), F("b", "2", .link = 5));

	check(base, ours,
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5)),
	      "a 2 x3\nb 2 x3\nc 2 x3\n", "");
	check(base, ours, TREE(F("a", "1", .link = 5), F("c", "1", .link = 5)), "a 2 x2\nc 2 x2\n",
	      "");
}

TEST(theirs_made_one_file_of_two_that_ours_changed)
{
	const char *both = "a 1|2a|3|4|5|6|7|8b|9| @900 x2\nz 1|2a|3|4|5|6|7|8b|9| @900 x2\n";

	check(TREE(F("a", TEN), F("z", TEN)), TREE(F("a", TEN2), F("z", TEN8)),
	      TREE(F("a", TEN, .link = 5), F("z", TEN, .link = 5)), both, "");
	check_wishes(TREE(F("a", TEN), F("z", TEN)), TREE(F("a", TEN2), F("z", TEN3)),
		     TREE(F("a", TEN, .link = 5), F("z", TEN, .link = 5)),
		     "a 1|2a|3|4|5|6|7|8|9|\nz 1|2bb|3|4|5|6|7|8|9|\n", "content z 1\n",
		     "a 1|2a|3|4|5|6|7|8|9|\nz 1|2bb|3|4|5|6|7|8|9|\n",
		     "a 1|2a|3|4|5|6|7|8|9| x2\nz 1|2a|3|4|5|6|7|8|9| x2\n");
}

TEST(theirs_joined_a_name_that_ours_changed_to_another_file)
{
	const struct leaf *base =
	    TREE(F("a", TEN), F("y", "9\n", .link = 5), F("z", "9\n", .link = 5));
	const struct leaf *ours =
	    TREE(F("a", TEN2), F("y", "9\n", .link = 5), F("z", "9\n", .link = 5));
	const struct leaf *theirs =
	    TREE(F("a", "9\n", .link = 5), F("y", "9\n", .link = 5), F("z", "9\n", .link = 5));
	const char *stays = "a 1|2a|3|4|5|6|7|8|9|\ny 9| x2\nz 9| x2\n";

	check_wishes(base, ours, theirs, stays, "content a 1\n", stays,
		     "a 9| x3\ny 9| x3\nz 9| x3\n");
}

TEST(ours_made_one_file_of_two_that_theirs_changed)
{
	const struct leaf *base = TREE(F("a", TEN), F("z", TEN));
	const struct leaf *ours = TREE(F("a", TEN, .link = 5), F("z", TEN, .link = 5));

	check(base, ours, TREE(F("a", TEN2), F("z", TEN8)),
	      "a 1|2a|3|4|5|6|7|8b|9| @900 x2\nz 1|2a|3|4|5|6|7|8b|9| @900 x2\n", "");
	/* A third, of ours, so that what was merged is merged again. */
	check(base,
	      TREE(F("a", TEN5, .link = 5, .xattr = "user.o=1"),
		   F("z", TEN5, .link = 5, .xattr = "user.o=1")),
	      TREE(F("a", TEN2, .xattr = "user.a=1"), F("z", TEN8, .xattr = "user.z=1")),
	      "a 1|2a|3|4|5c|6|7|8b|9| @900 user.a=1 user.o=1 user.z=1 x2\n"
	      "z 1|2a|3|4|5c|6|7|8b|9| @900 user.a=1 user.o=1 user.z=1 x2\n",
	      "");
	check(base, ours, TREE(F("a", TEN2), F("z", TEN3)),
	      "a 1|2a|3|4|5|6|7|8|9| x2\nz 1|2a|3|4|5|6|7|8|9| x2\n", "content z 1 !\n");
	check(TREE(F("a", TEN, .link = 6), F("b", TEN, .link = 6), F("y", TEN, .link = 7),
		   F("z", TEN, .link = 7)),
	      TREE(F("a", TEN, .link = 6), F("b", TEN, .link = 6), F("y", TEN, .link = 6),
		   F("z", TEN, .link = 6)),
	      TREE(F("a", TEN2, .link = 6), F("b", TEN2, .link = 6), F("y", TEN8, .link = 7),
		   F("z", TEN8, .link = 7)),
	      "a 1|2a|3|4|5|6|7|8b|9| @900 x4\nb 1|2a|3|4|5|6|7|8b|9| @900 x4\n"
	      "y 1|2a|3|4|5|6|7|8b|9| @900 x4\nz 1|2a|3|4|5|6|7|8b|9| @900 x4\n",
	      "");
}

TEST(theirs_joined_a_name_to_a_file_that_has_another_number_in_ours)
{
	check(TREE(F("b", "x"), F("c", "1", .link = 5), F("z", "1", .link = 5)),
	      TREE(F("b", "x"), F("c", "1", .link = 7), F("z", "1", .link = 7)),
	      TREE(F("b", "2", .link = 5), F("z", "2", .link = 5)), "b 2 x2\nz 2 x2\n", "");
}

TEST(theirs_moved_a_name_of_a_file_that_has_another_number_in_ours)
{
	const struct leaf *base = TREE(F("b/a", "1", .link = 5), F("c", "1", .link = 5));
	const struct leaf *ours = TREE(F("b/a", "1", .link = 7), F("c", "1", .link = 7));
	const struct leaf *changed = TREE(F("b/a", "2", .link = 7), F("c", "2", .link = 7));
	const struct leaf *theirs = TREE(F("c", "1", .link = 5), F("d/a", "1", .link = 5));

	check(base, ours, theirs, "c 1 x2\nd/a 1 x2\n", "");
	check(base, changed, theirs, "c 2 x2\nd/a 2 x2\n", "");
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

static uint64_t number_of(const struct object_id *id, const char *name)
{
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct tree_entry e;
	struct root root;

	CHECK_OK(root_get(store, id, &root, &err), &err);
	CHECK_OK(tree_lookup(store, &root.top.id, name, strlen(name), &e, &hold, &err), &err);
	return e.ino;
}

TEST(one_name_that_is_left_of_a_file_of_theirs_has_a_number_of_its_own)
{
	CLEANUP(trial_done) struct trial t = { 0 };
	struct err err = { 0 };

	CHECK_OK(try(&t, NOTHING,
		     TREE(F("b/z", "z"), F("x", "x", .link = 5), F("y", "x", .link = 5)),
		     TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)), NULL, &err),
		 &err);
	check_tree(&t.merge.root, "a 1\nb/z z\nx x x2\ny x x2\n");
	CHECK_EQ(number_of(&t.merge.root, "x"), 5);
	CHECK(number_of(&t.merge.root, "a") != 5);
}

TEST(each_file_has_a_number_of_its_own)
{
	CLEANUP(trial_done) struct trial a = { 0 };
	CLEANUP(trial_done) struct trial b = { 0 };
	CLEANUP(trial_done) struct trial c = { 0 };
	CLEANUP(trial_done) struct trial d = { 0 };
	struct err err = { 0 };

	CHECK_OK(
	    try(&a, NOTHING, TREE(F("x", "x", .ino = 7)), TREE(F("y", "y", .ino = 7)), NULL, &err),
	    &err);
	check_tree(&a.merge.root, "x x\ny y\n");
	CHECK_EQ(number_of(&a.merge.root, "x"), 7);
	CHECK(number_of(&a.merge.root, "y") != 7);
	/* Theirs moved a file and made another in its place. */
	CHECK_OK(try(&b, TREE(F("x", "1", .ino = 7)), TREE(F("x", "1", .ino = 7), F("z", "z")),
		     TREE(F("x", "2", .ino = 8), F("y", "1", .ino = 7)), NULL, &err),
		 &err);
	check_tree(&b.merge.root, "x 2\ny 1\nz z\n");
	CHECK_EQ(number_of(&b.merge.root, "x"), 7);
	CHECK(number_of(&b.merge.root, "y") != 7);
	/* Ours gave another name to a file that theirs moved. */
	CHECK_OK(try(&d, TREE(F("x", "1", .ino = 7)),
		     TREE(F("w", "2", .link = 7), F("x", "2", .link = 7)),
		     TREE(F("y", "1", .ino = 7)), &(struct merge_options){ .no_renames = true },
		     &err),
		 &err);
	check_tree(&d.merge.root, "w 2 x2\nx 2 x2\ny 1\n");
	CHECK(number_of(&d.merge.root, "x") != number_of(&d.merge.root, "y"));
	/* Theirs gave it another name. */
	CHECK_OK(try(&c, TREE(F("x", "1", .ino = 7)), TREE(F("x", "1", .ino = 7), F("z", "z")),
		     TREE(F("x", "2", .ino = 8), F("w", "1", .link = 7), F("y", "1", .link = 7)),
		     NULL, &err),
		 &err);
	check_tree(&c.merge.root, "w 1 x2\nx 2\ny 1 x2\nz z\n");
	CHECK(number_of(&c.merge.root, "x") != number_of(&c.merge.root, "y"));
}

TEST(a_number_that_theirs_gave_to_another_type_is_another_file)
{
	check(TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("e", "1", .link = 5)),
	      TREE(SYM("c", "x", .link = 5), SYM("d", "x", .link = 5)),
	      "c -> x x2\nd -> x x2\ne 1 x1\n", "");
}

TEST(theirs_put_another_type_in_the_place_of_one_name)
{
	const struct leaf *ours = TREE(F("b", "1", .link = 5), F("c", "1", .link = 5));

	check(TREE(F("b", "1")), ours, TREE(SYM("b", "x")), "b -> x\nc 1 x1\n", "");
	check(TREE(F("b", "1"), F("d", "2")),
	      TREE(F("b", "1", .link = 5), F("c", "1", .link = 5), F("d", "2")),
	      TREE(SYM("b", "x", .link = 6), SYM("d", "x", .link = 6)),
	      "b -> x x2\nc 1 x1\nd -> x x2\n", "");
	check_wishes(TREE(F("c", "1")), ours, TREE(SYM("b", "x"), F("c", "1")), "b 1 x2\nc 1 x2\n",
		     "add/add b\n", "b 1 x2\nc 1 x2\n", "b -> x\nc 1 x1\n");
}

TEST(ours_put_another_type_in_the_place_of_all_names)
{
	check(TREE(F("a", "1", .link = 5), F("b", "1", .link = 5)),
	      TREE(SYM("a", "x", .link = 7), SYM("b", "x", .link = 7)),
	      TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5)),
	      "a -> x x2\nb -> x x2\nc 1\n", "");
}

TEST(theirs_wrote_anew_a_file_that_ours_gave_another_name)
{
	const struct leaf *base = TREE(F("a", "1", .link = 5), F("b", "1", .link = 5));
	const struct leaf *theirs = TREE(F("a", "2", .link = 6), F("b", "2", .link = 6));

	check(base, TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5)),
	      theirs, "a 2 x3\nb 2 x3\nc 2 x3\n", "");
	check(base, TREE(F("a", "1", .link = 5), F("b", "x"), F("c", "1", .link = 5)),
	      TREE(F("a", "1", .link = 6), F("b", "1", .link = 6)), "a 1 x2\nb x\nc 1 x2\n", "");
}

TEST(theirs_left_one_name_to_a_file_that_ours_gave_another)
{
	const struct leaf *base = TREE(F("a", "1", .link = 5), F("b", "1", .link = 5));
	const struct leaf *ours =
	    TREE(F("a", "1", .link = 5), F("b", "1", .link = 5), F("c", "1", .link = 5));

	check(base, ours, TREE(F("a", "1", .ino = 5)), "a 1 x2\nc 1 x2\n", "");
	check(base, ours, TREE(F("a", "2", .ino = 5)), "a 2 x2\nc 2 x2\n", "");
	check(base, ours, TREE(F("a", "2", .ino = 5), F("b", "3", .ino = 6)),
	      "a 2 x2\nb 3\nc 2 x2\n", "");
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

TEST(theirs_parted_the_names_of_a_file_that_ours_wrote_anew)
{
	const struct leaf *base = TREE(F("a", "1", .link = 5), F("b", "1", .link = 5));
	const struct leaf *ours = TREE(F("a", "1", .link = 6), F("b", "1", .link = 6));

	check(base, ours, TREE(F("a", "1"), F("b", "1")), "a 1\nb 1\n", "");
	check(base, ours, TREE(F("a", "1"), F("b", "2")), "a 1\nb 2\n", "");
	check(base, TREE(F("a", "3", .link = 6), F("b", "3", .link = 6)),
	      TREE(F("a", "1"), F("b", "1")), "a 3\nb 3\n", "");
}

TEST(ours_parted_the_names_of_a_file_that_theirs_changed)
{
	check(TREE(F("a", TEN, .link = 5), F("b", TEN, .link = 5)), TREE(F("a", TEN2), F("b", TEN)),
	      TREE(F("a", TEN8, .link = 5), F("b", TEN8, .link = 5)),
	      "a 1|2a|3|4|5|6|7|8b|9| @900\nb 1|2|3|4|5|6|7|8b|9|\n", "");
}

TRIAL_MAIN("merge-names")
