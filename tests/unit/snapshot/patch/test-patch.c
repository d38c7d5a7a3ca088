#include "snapshot/patch/patch.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include "tests/lib/damage.h"
#include "tests/unit/snapshot/capture/capture-fixture.h"
#include "tests/unit/snapshot/patch/patch-fixture.h"

/* Two captures of one directory, and the difference of them. */
struct two {
	struct scene scene;
	struct object_id before;
	struct delta delta;
	struct buf text;
};

static struct two two_new(const char *name)
{
	umask(022);
	return (struct two){ .scene = scene_new(name) };
}

static void two_done(struct two *t)
{
	delta_done(&t->delta);
	buf_done(&t->text);
	scene_done(&t->scene);
}

static void remember(struct two *t)
{
	scene_capture(&t->scene);
	t->before = t->scene.id;
}

static void compare(struct two *t)
{
	scene_capture(&t->scene);
	delta_done(&t->delta);
	buf_reset(&t->text);
	patch_between(t->scene.s, &t->before, &t->scene.id, true, &t->delta, &t->text);
}

static void check_patch(struct two *t, const char *want)
{
	compare(t);
	CHECK_STR(buf_str(&t->text), want);
}

static void drop(struct two *t, const char *path)
{
	CHECK_EQ(unlinkat(t->scene.fd, path, 0), 0);
}

#define A40 "78981922613b2afb6025042ff6bd878ac1994e85" /* blob "a\n" */
#define B40 "61780798228d17af2d34fce4cfbdf35556832472" /* blob "b\n" */
#define E40 "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391" /* the empty blob */
#define Z40 "0000000000000000000000000000000000000000"

TEST(a_changed_text_is_a_hunk_with_the_ids_that_git_has)
{
	CLEANUP(two_done) struct two t = two_new("text");

	scene_text(&t.scene, "f", "a\n");
	remember(&t);
	scene_text(&t.scene, "f", "b\n");
	check_patch(&t, "diff --git a/f b/f\nindex " A40 ".." B40 " 100644\n"
			"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n");
}

TEST(what_came_and_went_is_told_with_its_mode)
{
	CLEANUP(two_done) struct two t = two_new("came");

	scene_text(&t.scene, "gone", "a\n");
	remember(&t);
	drop(&t, "gone");
	scene_text(&t.scene, "new", "b\n");
	CHECK_EQ(fchmodat(t.scene.fd, "new", 0755, 0), 0);
	check_patch(&t, "diff --git a/gone b/gone\ndeleted file mode 100644\nindex " A40 ".." Z40
			"\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
			"diff --git a/new b/new\nnew file mode 100755\nindex " Z40 ".." B40
			"\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+b\n");
}

TEST(an_empty_file_has_headers_alone)
{
	CLEANUP(two_done) struct two t = two_new("empty");

	remember(&t);
	scene_text(&t.scene, "e", "");
	check_patch(&t, "diff --git a/e b/e\nnew file mode 100644\nindex " Z40 ".." E40 "\n");
}

TEST(a_missing_newline_at_the_end_is_told)
{
	CLEANUP(two_done) struct two t = two_new("newline");

	scene_text(&t.scene, "f", "a\n");
	remember(&t);
	scene_text(&t.scene, "f", "a");
	compare(&t);
	CHECK_HAS(buf_str(&t.text), "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
}

TEST(becoming_executable_is_a_change_of_mode_alone)
{
	CLEANUP(two_done) struct two t = two_new("mode");

	scene_text(&t.scene, "f", "a\n");
	remember(&t);
	CHECK_EQ(fchmodat(t.scene.fd, "f", 0755, 0), 0);
	check_patch(&t, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n");
	CHECK_EQ(t.delta.n_notes, 0);
}

TEST(a_symlink_is_a_text_without_an_end)
{
	CLEANUP(two_done) struct two t = two_new("symlink");

	remember(&t);
	CHECK_EQ(symlinkat("there", t.scene.fd, "s"), 0);
	compare(&t);
	CHECK_HAS(buf_str(&t.text), "new file mode 120000\n");
	CHECK_HAS(buf_str(&t.text), "+there\n\\ No newline at end of file\n");
}

TEST(another_type_is_one_change_and_two_parts_of_a_patch)
{
	CLEANUP(two_done) struct two t = two_new("type");

	scene_text(&t.scene, "f", "a\n");
	remember(&t);
	drop(&t, "f");
	CHECK_EQ(symlinkat("there", t.scene.fd, "f"), 0);
	compare(&t);
	CHECK_EQ(t.delta.n_files, 1);
	CHECK_EQ(t.delta.files[0].status, DELTA_TYPE);
	CHECK_HAS(buf_str(&t.text), "deleted file mode 100644\n");
	CHECK_HAS(buf_str(&t.text), "new file mode 120000\n");
}

TEST(a_file_with_a_nul_is_a_literal_both_ways)
{
	CLEANUP(two_done) struct two t = two_new("binary");

	remember(&t);
	scene_write(&t.scene, "f", "a\0b", 3);
	compare(&t);
	CHECK_HAS(buf_str(&t.text), "\nGIT binary patch\nliteral 3\n");
	CHECK_HAS(buf_str(&t.text), "\n\nliteral 0\nH");
}

TEST(names_that_a_line_cannot_hold_are_quoted)
{
	CLEANUP(two_done) struct two t = two_new("quoted");

	remember(&t);
	scene_text(&t.scene, "a\nb", "a\n");
	scene_text(&t.scene, "with blank", "b\n");
	compare(&t);
	CHECK_HAS(buf_str(&t.text), "diff --git \"a/a\\nb\" \"b/a\\nb\"\n");
	CHECK_HAS(buf_str(&t.text), "+++ \"b/a\\nb\"\n");
	CHECK_HAS(buf_str(&t.text), "diff --git a/with blank b/with blank\n");
	CHECK_HAS(buf_str(&t.text), "+++ b/with blank\t\n");
}

/* More than is searched for here, so libgit2 does it. */
TEST(texts_that_have_little_in_common_are_compared_too)
{
	CLEANUP(two_done) struct two t = two_new("large");
	CLEANUP(buf_done) struct buf text = BUF_INIT;
	struct patch_counts counts;
	struct err err = { 0 };

	for (int i = 0; i < 1000; i++)
		CHECK_EQ(buf_printf(&text, "%s %d\n", i % 10 == 0 ? "same" : "old", i), 0);
	scene_write(&t.scene, "f", text.data, text.len);
	remember(&t);
	buf_reset(&text);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(buf_printf(&text, "%s %d\n", i % 10 == 0 ? "same" : "new", i), 0);
	scene_write(&t.scene, "f", text.data, text.len);
	compare(&t);
	CHECK_OK(patch_file(t.scene.s, &t.delta.files[0], 3, NULL, NULL, &counts, &err), &err);
	CHECK_EQ(counts.added, 900);
	CHECK_EQ(counts.removed, 900);
}

TEST(hunks_have_the_lines_around_them_and_meet_where_these_do)
{
	CLEANUP(two_done) struct two t = two_new("hunks");
	CLEANUP(buf_done) struct buf text = BUF_INIT;

	for (int i = 1; i <= 30; i++)
		CHECK_EQ(buf_printf(&text, "%d\n", i), 0);
	scene_write(&t.scene, "f", text.data, text.len);
	remember(&t);
	buf_reset(&text);
	for (int i = 1; i <= 30; i++)
		if (i != 2 && i != 20)
			CHECK_EQ(buf_printf(&text, i == 9 || i == 27 ? "%d x\n" : "%d\n", i), 0);
	scene_write(&t.scene, "f", text.data, text.len);
	compare(&t);
	CHECK_HAS(buf_str(&t.text),
		  "@@ -1,12 +1,11 @@\n 1\n-2\n 3\n 4\n 5\n 6\n 7\n 8\n-9\n+9 x\n"
		  " 10\n 11\n 12\n@@ -17,14 +16,13 @@\n 17\n 18\n 19\n-20\n 21\n 22\n 23\n 24\n"
		  " 25\n 26\n-27\n+27 x\n 28\n 29\n 30\n");
}

TEST(what_is_added_below_its_like_is_told_as_the_lower)
{
	CLEANUP(two_done) struct two t = two_new("below");

	scene_text(&t.scene, "f", "f {\n}\n\ng {\n}\n");
	remember(&t);
	scene_text(&t.scene, "f", "f {\n}\n\nf {\n}\n\ng {\n}\n");
	compare(&t);
	CHECK_HAS(buf_str(&t.text), "@@ -1,5 +1,8 @@\n f {\n }\n \n+f {\n+}\n+\n g {\n }\n");
}

/* --- renames ---------------------------------------------------------------------------- */

TEST(what_moved_unchanged_is_a_rename_without_content)
{
	CLEANUP(two_done) struct two t = two_new("moved");

	scene_mkdir(&t.scene, "d");
	scene_text(&t.scene, "d/f", "a\n");
	remember(&t);
	CHECK_EQ(renameat(t.scene.fd, "d/f", t.scene.fd, "g"), 0);
	check_patch(&t, "diff --git a/d/f b/g\nsimilarity index 100%\n"
			"rename from d/f\nrename to g\n");
}

TEST(of_equal_files_the_one_of_the_same_name_moved)
{
	CLEANUP(two_done) struct two t = two_new("same");

	scene_text(&t.scene, "a", "a\n");
	scene_text(&t.scene, "b", "a\n");
	remember(&t);
	drop(&t, "a");
	drop(&t, "b");
	scene_mkdir(&t.scene, "d");
	scene_text(&t.scene, "d/b", "a\n");
	compare(&t);
	CHECK_EQ(t.delta.n_files, 2);
	CHECK_STR(t.delta.files[0].path, "a");
	CHECK_EQ(t.delta.files[0].status, DELTA_DELETED);
	CHECK_STR(t.delta.files[1].path, "d/b");
	CHECK_STR(t.delta.files[1].old_path, "b");
}

TEST(what_moved_and_changed_a_little_is_a_rename_with_a_hunk)
{
	static const char old[] = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";
	CLEANUP(two_done) struct two t = two_new("similar");

	scene_text(&t.scene, "f", old);
	scene_text(&t.scene, "other", "nothing\nof\nthe\nkind\n");
	remember(&t);
	drop(&t, "f");
	drop(&t, "other");
	scene_text(&t.scene, "g", "one\ntwo\nthree\nfour\nfive\nsix\nseven\nEIGHT\n");
	compare(&t);
	CHECK_EQ(t.delta.n_files, 2);
	CHECK_EQ(t.delta.files[0].status, DELTA_RENAMED);
	CHECK_STR(t.delta.files[0].old_path, "f");
	CHECK(t.delta.files[0].similarity >= 50 && t.delta.files[0].similarity < 100);
	CHECK_EQ(t.delta.files[1].status, DELTA_DELETED);
	CHECK_HAS(buf_str(&t.text), "rename from f\nrename to g\n");
	CHECK_HAS(buf_str(&t.text), "-eight\n+EIGHT\n");
}

TEST(nothing_is_taken_for_moved_if_nobody_asks)
{
	CLEANUP(two_done) struct two t = two_new("unasked");
	struct err err = { 0 };

	scene_text(&t.scene, "f", "a\n");
	remember(&t);
	CHECK_EQ(renameat(t.scene.fd, "f", t.scene.fd, "g"), 0);
	scene_capture(&t.scene);
	CHECK_OK(delta_find(t.scene.s, &t.before, &t.scene.id, &(struct delta_options){ 0 },
			    &t.delta, &err),
		 &err);
	CHECK_EQ(t.delta.n_files, 2);
	CHECK_EQ(t.delta.files[0].status, DELTA_DELETED);
	CHECK_EQ(t.delta.files[1].status, DELTA_ADDED);
}

TEST(empty_files_never_moved)
{
	CLEANUP(two_done) struct two t = two_new("empties");

	scene_text(&t.scene, "f", "");
	remember(&t);
	CHECK_EQ(renameat(t.scene.fd, "f", t.scene.fd, "g"), 0);
	compare(&t);
	CHECK_EQ(t.delta.n_files, 2);
}

/* --- what a patch cannot say ------------------------------------------------------------ */

static void check_note(const struct two *t, size_t i, char status, unsigned what, const char *path)
{
	CHECK(i < t->delta.n_notes);
	CHECK_STR(t->delta.notes[i].path, path);
	CHECK_EQ(t->delta.notes[i].status, status);
	CHECK_EQ(t->delta.notes[i].what, what);
}

TEST(what_git_has_no_words_for_is_noted)
{
	CLEANUP(two_done) struct two t = two_new("notes");

	scene_mkdir(&t.scene, "dir");
	scene_text(&t.scene, "dir/in", "a\n");
	scene_text(&t.scene, "exec", "a\n");
	scene_text(&t.scene, "mode", "a\n");
	CHECK_EQ(mkfifoat(t.scene.fd, "pipe", 0600), 0);
	remember(&t);
	CHECK_EQ(fchmodat(t.scene.fd, "dir", 0700, 0), 0);
	scene_mkdir(&t.scene, "empty");
	CHECK_EQ(fchmodat(t.scene.fd, "exec", 0700, 0), 0);
	CHECK_EQ(fchmodat(t.scene.fd, "mode", 0640, 0), 0);
	drop(&t, "pipe");
	compare(&t);
	CHECK_EQ(t.delta.n_notes, 5);
	check_note(&t, 0, DELTA_MODIFIED, DELTA_MODE, "dir");
	check_note(&t, 1, DELTA_ADDED, DELTA_DIRECTORY, "empty");
	check_note(&t, 2, DELTA_MODIFIED, DELTA_MODE, "exec");
	check_note(&t, 3, DELTA_MODIFIED, DELTA_MODE, "mode");
	check_note(&t, 4, DELTA_DELETED, DELTA_SPECIAL, "pipe");
	CHECK_EQ(t.delta.n_files, 1);
	CHECK_STR(t.delta.files[0].path, "exec");
}

TEST(owners_and_attributes_are_noted)
{
	CLEANUP(two_done) struct two t = two_new("owners");
	const char *f = test_path("owners/f");

	scene_text(&t.scene, "f", "a\n");
	scene_text(&t.scene, "g", "a\n");
	if (fsetxattr(t.scene.fd, "user.probe", "x", 1, 0) < 0 || geteuid() != 0)
		TEST_SKIP("needs root and user attributes");
	remember(&t);
	CHECK_EQ(setxattr(f, "user.note", "x", 1, 0), 0);
	CHECK_EQ(fchownat(t.scene.fd, "g", 7, 8, 0), 0);
	scene_text(&t.scene, "g", "b\n");
	compare(&t);
	CHECK_EQ(t.delta.n_files, 1);
	CHECK_EQ(t.delta.n_notes, 2);
	check_note(&t, 0, DELTA_MODIFIED, DELTA_XATTRS, "f");
	check_note(&t, 1, DELTA_MODIFIED, DELTA_OWNER, "g");
}

TEST(names_that_git_refuses_are_counted_and_not_written)
{
	static const char *const names[] = { ".git/x", "d/.GIT/x", "git~1", ".git ", ".git...:y" };
	static const char *const fine[] = { ".gitx", ".gitignore", "git~2", ".gitmodules",
					    "a.git" };
	CLEANUP(two_done) struct two t = two_new("refused");

	scene_mkdir(&t.scene, ".git");
	scene_mkdir(&t.scene, "d");
	scene_mkdir(&t.scene, "d/.GIT");
	remember(&t);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		scene_text(&t.scene, names[i], "a\n");
	compare(&t);
	CHECK_EQ(t.delta.n_files, ARRAY_LEN(names));
	for (size_t i = 0; i < t.delta.n_files; i++)
		CHECK(t.delta.files[i].refused);
	CHECK_EQ(t.text.len, 0);

	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		scene_text(&t.scene, fine[i], "a\n");
	remember(&t);
	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		scene_text(&t.scene, fine[i], "b\n");
	compare(&t);
	CHECK_EQ(t.delta.n_files, ARRAY_LEN(fine));
	for (size_t i = 0; i < t.delta.n_files; i++)
		CHECK(!t.delta.files[i].refused);
}

TEST(only_the_paths_that_were_named_and_what_is_below_them)
{
	static const char *const paths[] = { "d", "x" };
	CLEANUP(two_done) struct two t = two_new("limited");
	struct err err = { 0 };

	scene_mkdir(&t.scene, "d");
	remember(&t);
	scene_text(&t.scene, "d/in", "a\n");
	scene_text(&t.scene, "d.c", "a\n");
	scene_text(&t.scene, "dd", "a\n");
	scene_text(&t.scene, "x", "a\n");
	scene_capture(&t.scene);
	CHECK_OK(delta_find(t.scene.s, &t.before, &t.scene.id,
			    &(struct delta_options){ .paths = paths, .n_paths = 2 }, &t.delta,
			    &err),
		 &err);
	CHECK_EQ(t.delta.n_files, 2);
	CHECK_STR(t.delta.files[0].path, "d/in");
	CHECK_STR(t.delta.files[1].path, "x");
}

/* --- limits and damage ------------------------------------------------------------------ */

TEST(a_text_above_64_mib_is_binary_and_git_takes_it)
{
	CLEANUP(two_done) struct two t = two_new("huge");
	const size_t size = ((size_t)64 << 20) + 1;
	AUTO_FREE char *lines = malloc(size);
	const char *const args[] = { "apply", test_path("huge.patch"), NULL };
	struct stat st;

	CHECK(lines != NULL);
	memset(lines, 'x', size);
	for (size_t i = 79; i < size; i += 80)
		lines[i] = '\n';
	remember(&t);
	scene_write(&t.scene, "f", lines, size);
	compare(&t);
	CHECK_HAS(buf_str(&t.text), "\nGIT binary patch\nliteral 67108865\n");
	CHECK(t.text.len < size / 10);
	drop(&t, "f");
	patch_save(args[1], &t.text);
	CHECK_EQ(patch_git(t.scene.path, test_path("log"), args), 0);
	CHECK_EQ(fstatat(t.scene.fd, "f", &st, 0), 0);
	CHECK_EQ(st.st_size, size);
}

TEST(content_that_cannot_be_read_is_named)
{
	CLEANUP(two_done) struct two t = two_new("damaged");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct patch_counts counts;
	struct err err = { 0 };
	struct tree_entry e;

	scene_mkdir(&t.scene, "d");
	scene_text(&t.scene, "d/f", "a\n");
	remember(&t);
	scene_text(&t.scene, "d/f", "some other text\n");
	scene_capture(&t.scene);
	e = scene_entry(&t.scene, "d/f", &hold);
	damage_object(store_path(t.scene.s), OBJECT_CHUNK, &e.id);
	store_close(t.scene.s);
	t.scene.s = stock_open(test_path("damaged.store"), STORE_READ);
	CHECK_OK(delta_find(t.scene.s, &t.before, &t.scene.id, &(struct delta_options){ 0 },
			    &t.delta, &err),
		 &err);
	CHECK_EQ(patch_file(t.scene.s, &t.delta.files[0], 3, NULL, NULL, &counts, &err), -EBADMSG);
	CHECK_HAS(err.msg, "'d/f'");
}

static int refuse(enum patch_part part, const char *text, size_t len, void *ctx, struct err *err)
{
	const enum patch_part *at = ctx;

	(void)text;
	(void)len;
	return part == *at ? err_set(err, -EPIPE, "no more") : 0;
}

TEST(who_takes_no_more_ends_it_at_every_part)
{
	static const enum patch_part parts[] = { PATCH_HEADER,  PATCH_HUNK, PATCH_ADDED,
						 PATCH_REMOVED, PATCH_MARK, PATCH_SAME };
	CLEANUP(two_done) struct two t = two_new("pipe");
	struct patch_counts counts;

	scene_text(&t.scene, "f", "same\na\n");
	remember(&t);
	scene_text(&t.scene, "f", "same\nb");
	compare(&t);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		enum patch_part at = parts[i];
		struct err err = { 0 };

		CHECK_EQ(patch_file(t.scene.s, &t.delta.files[0], 3, refuse, &at, &counts, &err),
			 -EPIPE);
		CHECK_STR(err.msg, "no more");
	}
}

TEST(lines_are_counted_without_writing_any)
{
	CLEANUP(two_done) struct two t = two_new("counted");
	struct patch_counts counts;
	struct err err = { 0 };

	scene_text(&t.scene, "f", "a\nb\nc\n");
	remember(&t);
	scene_text(&t.scene, "f", "a\nx\ny\nc\n");
	compare(&t);
	CHECK_OK(patch_file(t.scene.s, &t.delta.files[0], 3, NULL, NULL, &counts, &err), &err);
	CHECK_EQ(counts.added, 2);
	CHECK_EQ(counts.removed, 1);
	CHECK(!counts.binary);
}

TEST_MAIN("patch")
