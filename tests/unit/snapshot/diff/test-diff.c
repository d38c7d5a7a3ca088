#include "snapshot/diff/diff.h"

#include <sys/stat.h>

#include "base/buf.h"
#include "tests/lib/damage.h"
#include "tests/unit/snapshot/capture/capture-fixture.h"

/* Two captures of one directory, which a test changes between them. */
struct two {
	struct scene scene;
	struct object_id before;
};

static struct two two_new(const char *name)
{
	return (struct two){ .scene = scene_new(name) };
}

static void two_done(struct two *t)
{
	scene_done(&t->scene);
}

static void remember(struct two *t)
{
	scene_capture(&t->scene);
	t->before = t->scene.id;
}

/* One line for each entry: what the two sides are, in what they differ, and the path. */
static int describe(const struct diff_entry *e, void *ctx, struct err *err)
{
	static const char letters[] = "TCMOXLm";
	struct buf *out = ctx;

	(void)err;
	CHECK_EQ(buf_printf(out, "%s", !e->before ? "+" : !e->after ? "-" : ""), 0);
	for (int i = 0; letters[i] != '\0'; i++)
		if (e->what & 1u << i)
			CHECK_EQ(buf_append_u8(out, (uint8_t)letters[i]), 0);
	CHECK_EQ(buf_printf(out, "%s%s /%s\n", e->before_linked ? "<" : "",
			    e->after_linked ? ">" : "", e->path),
		 0);
	return 0;
}

static void check_walk(struct two *t, const struct diff_options *options, const char *want)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	struct err err = { 0 };

	scene_capture(&t->scene);
	CHECK_OK(diff_walk(t->scene.s, &t->before, &t->scene.id, options, describe, &out, &err),
		 &err);
	CHECK_STR(buf_str(&out), want);
}

static const struct diff_options plain, deep = { .deep = true };

TEST(trees_that_are_equal_differ_in_nothing)
{
	CLEANUP(two_done) struct two t = two_new("equal");

	scene_mkdir(&t.scene, "d");
	scene_text(&t.scene, "d/a", "a");
	remember(&t);
	check_walk(&t, &plain, "");
}

TEST(every_way_in_which_a_file_changes_is_told)
{
	CLEANUP(two_done) struct two t = two_new("ways");

	scene_text(&t.scene, "content", "a");
	scene_text(&t.scene, "gone", "a");
	scene_text(&t.scene, "mode", "a");
	scene_text(&t.scene, "owner", "a");
	scene_text(&t.scene, "both", "a");
	CHECK_EQ(symlinkat("here", t.scene.fd, "link"), 0);
	remember(&t);
	scene_text(&t.scene, "content", "b");
	scene_text(&t.scene, "new", "a");
	CHECK_EQ(unlinkat(t.scene.fd, "gone", 0), 0);
	CHECK_EQ(fchmodat(t.scene.fd, "mode", 0600, 0), 0);
	scene_text(&t.scene, "both", "c");
	CHECK_EQ(fchmodat(t.scene.fd, "both", 0755, 0), 0);
	CHECK_EQ(unlinkat(t.scene.fd, "link", 0), 0);
	CHECK_EQ(symlinkat("there", t.scene.fd, "link"), 0);
	if (geteuid() == 0)
		CHECK_EQ(fchownat(t.scene.fd, "owner", 7, 8, 0), 0);
	check_walk(&t, &plain,
		   geteuid() == 0
		       ? "CM /both\nC /content\n- /gone\nC /link\nM /mode\n+ /new\nO /owner\n"
		       : "CM /both\nC /content\n- /gone\nC /link\nM /mode\n+ /new\n");
}

TEST(another_type_is_told_as_that_and_nothing_else)
{
	CLEANUP(two_done) struct two t = two_new("types");

	scene_text(&t.scene, "a", "a");
	scene_mkdir(&t.scene, "b");
	scene_text(&t.scene, "b/x", "a");
	scene_text(&t.scene, "c", "a");
	remember(&t);
	CHECK_EQ(unlinkat(t.scene.fd, "a", 0), 0);
	CHECK_EQ(symlinkat("a", t.scene.fd, "a"), 0);
	CHECK_EQ(unlinkat(t.scene.fd, "b/x", 0), 0);
	CHECK_EQ(unlinkat(t.scene.fd, "b", AT_REMOVEDIR), 0);
	scene_text(&t.scene, "b", "a");
	CHECK_EQ(unlinkat(t.scene.fd, "c", 0), 0);
	scene_mkdir(&t.scene, "c");
	scene_text(&t.scene, "c/y", "a");
	check_walk(&t, &plain, "T /a\nT /b\nT /c\n");
	check_walk(&t, &deep, "T /a\nT /b\n- /b/x\nT /c\n+ /c/y\n");
}

TEST(a_directory_that_came_or_went_is_told_alone_or_with_all_in_it)
{
	CLEANUP(two_done) struct two t = two_new("deep");

	scene_mkdir(&t.scene, "old");
	scene_mkdir(&t.scene, "old/in");
	scene_text(&t.scene, "old/in/x", "a");
	remember(&t);
	CHECK_EQ(renameat(t.scene.fd, "old", t.scene.fd, "new"), 0);
	check_walk(&t, &plain, "+ /new\n- /old\n");
	check_walk(&t, &deep, "+ /new\n+ /new/in\n+ /new/in/x\n- /old\n- /old/in\n- /old/in/x\n");
}

TEST(a_directory_comes_before_what_is_in_it_and_names_by_their_bytes)
{
	CLEANUP(two_done) struct two t = two_new("order");

	scene_mkdir(&t.scene, "a");
	remember(&t);
	CHECK_EQ(fchmodat(t.scene.fd, "a", 0700, 0), 0);
	scene_text(&t.scene, "a/z", "a");
	scene_text(&t.scene, "a.c", "a");
	scene_text(&t.scene, "a\377", "a");
	scene_text(&t.scene, "B", "a");
	CHECK_EQ(fchmodat(t.scene.fd, ".", 0700, 0), 0);
	check_walk(&t, &plain, "M /\n+ /B\nM /a\n+ /a/z\n+ /a.c\n+ /a\377\n");
}

TEST(times_count_only_for_who_asks)
{
	CLEANUP(two_done) struct two t = two_new("times");
	const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 5 } };
	struct timespec top[2];
	struct stat st;

	scene_text(&t.scene, "a", "a");
	CHECK_EQ(fstat(t.scene.fd, &st), 0);
	top[0] = top[1] = st.st_mtim;
	remember(&t);
	CHECK_EQ(utimensat(t.scene.fd, "a", times, 0), 0);
	CHECK_EQ(futimens(t.scene.fd, top), 0);
	check_walk(&t, &plain, "");
	check_walk(&t, &(struct diff_options){ .mtimes = true }, "m /a\n");
}

TEST(a_file_with_several_names_is_told_at_each_of_them)
{
	CLEANUP(two_done) struct two t = two_new("names");

	scene_mkdir(&t.scene, "d");
	scene_text(&t.scene, "d/a", "a");
	CHECK_EQ(linkat(t.scene.fd, "d/a", t.scene.fd, "b", 0), 0);
	scene_text(&t.scene, "c", "c");
	remember(&t);
	scene_text(&t.scene, "b", "changed");
	check_walk(&t, &plain, "C<> /b\nC<> /d/a\n");
}

TEST(a_name_that_is_now_shared_is_told_to_who_asks_for_links)
{
	CLEANUP(two_done) struct two t = two_new("shared");

	scene_text(&t.scene, "a", "a");
	remember(&t);
	CHECK_EQ(linkat(t.scene.fd, "a", t.scene.fd, "b", 0), 0);
	check_walk(&t, &plain, "+> /b\n");
	check_walk(&t, &(struct diff_options){ .links = true }, "L> /a\n+> /b\n");
}

static int stop_at_second(const struct diff_entry *e, void *ctx, struct err *err)
{
	int *n = ctx;

	(void)e;
	(void)err;
	return ++*n == 2 ? 5 : 0;
}

TEST(an_answer_that_is_not_zero_ends_the_walk)
{
	CLEANUP(two_done) struct two t = two_new("stop");
	struct err err = { 0 };
	int n = 0;

	remember(&t);
	scene_text(&t.scene, "a", "a");
	scene_text(&t.scene, "b", "a");
	scene_text(&t.scene, "c", "a");
	scene_capture(&t.scene);
	CHECK_EQ(diff_walk(t.scene.s, &t.before, &t.scene.id, &plain, stop_at_second, &n, &err), 5);
	CHECK_EQ(n, 2);
}

TEST(a_directory_that_cannot_be_read_is_named)
{
	CLEANUP(two_done) struct two t = two_new("damaged");
	CLEANUP(buf_done) struct buf out = BUF_INIT, hold = BUF_INIT;
	struct err err = { 0 };
	struct tree_entry in;

	scene_mkdir(&t.scene, "d");
	scene_mkdir(&t.scene, "d/in");
	scene_text(&t.scene, "d/in/x", "a");
	remember(&t);
	scene_text(&t.scene, "d/in/y", "a");
	scene_capture(&t.scene);
	in = scene_entry(&t.scene, "d/in", &hold);
	damage_object(store_path(t.scene.s), OBJECT_TREE, &in.id);
	store_close(t.scene.s);
	t.scene.s = stock_open(test_path("damaged.store"), STORE_READ);
	CHECK_EQ(diff_walk(t.scene.s, &t.before, &t.scene.id, &plain, describe, &out, &err),
		 -EBADMSG);
	CHECK_HAS(err.msg, "directory 'd/in'");
}

/* --- twins ------------------------------------------------------------------------------ */

/* A new ctime and nothing else. */
static void touch(struct two *t, const char *name)
{
	struct stat st;

	CHECK_EQ(fstatat(t->scene.fd, name, &st, 0), 0);
	CHECK_EQ(fchmodat(t->scene.fd, name, st.st_mode & 07777, 0), 0);
}

static int walk_again(struct two *t, const struct diff_options *options, struct err *err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT;
	int r = diff_walk(t->scene.s, &t->before, &t->scene.id, options, describe, &out, err);

	CHECK(r < 0 || out.len == 0);
	return r;
}

TEST(directories_that_were_found_to_be_the_same_are_not_read_again)
{
	CLEANUP(two_done) struct two t = two_new("twins");
	CLEANUP(twins_done) struct twins twins;
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct err err = { 0 };
	struct tree_entry in;

	twins_init(&twins);
	scene_mkdir(&t.scene, "d");
	scene_mkdir(&t.scene, "d/in");
	scene_text(&t.scene, "d/in/x", "a");
	remember(&t);
	scene_settle();
	touch(&t, "d/in/x");
	check_walk(&t, &(struct diff_options){ .mtimes = true, .twins = &twins }, "");
	in = scene_entry(&t.scene, "d/in", &hold);
	damage_object(store_path(t.scene.s), OBJECT_TREE, &in.id);
	store_close(t.scene.s);
	t.scene.s = stock_open(test_path("twins.store"), STORE_READ);
	CHECK_OK(walk_again(&t, &(struct diff_options){ .twins = &twins }, &err), &err);
	CHECK_OK(walk_again(&t, &(struct diff_options){ .mtimes = true, .twins = &twins }, &err),
		 &err);
	CHECK_EQ(walk_again(&t, &plain, &err), -EBADMSG);
	CHECK_EQ(walk_again(&t, &(struct diff_options){ .traces = true, .twins = &twins }, &err),
		 -EBADMSG);
}

TEST(what_differs_is_told_again_whatever_was_found_before)
{
	CLEANUP(two_done) struct two t = two_new("unlike");
	CLEANUP(twins_done) struct twins twins;
	const struct diff_options loose = { .twins = &twins },
				  strict = { .mtimes = true, .twins = &twins };
	const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 5 } };

	twins_init(&twins);
	for (int i = 0; i < 3; i++)
		scene_mkdir(&t.scene, (const char *[]){ "a", "b", "b/c" }[i]);
	scene_text(&t.scene, "a/time", "a");
	scene_text(&t.scene, "b/c/text", "a");
	remember(&t);
	CHECK_EQ(utimensat(t.scene.fd, "a/time", times, 0), 0);
	scene_text(&t.scene, "b/c/text", "b");
	CHECK_EQ(utimensat(t.scene.fd, "b/c/text", times, 0), 0);
	for (int i = 0; i < 2; i++) {
		check_walk(&t, &loose, "C /b/c/text\n");
		check_walk(&t, &strict, "m /a/time\nCm /b/c/text\n");
	}
}

TEST(a_directory_with_a_name_of_a_file_that_has_others_is_read_each_time)
{
	CLEANUP(two_done) struct two t = two_new("others");
	CLEANUP(twins_done) struct twins twins;
	const struct diff_options options = { .mtimes = true, .twins = &twins };

	twins_init(&twins);
	scene_mkdir(&t.scene, "d");
	scene_text(&t.scene, "d/a", "a");
	scene_text(&t.scene, "d/y", "a");
	CHECK_EQ(linkat(t.scene.fd, "d/a", t.scene.fd, "b", 0), 0);
	remember(&t);
	scene_settle();
	touch(&t, "d/y");
	check_walk(&t, &options, "");
	scene_text(&t.scene, "b", "longer");
	check_walk(&t, &(struct diff_options){ .twins = &twins }, "C<> /b\nC<> /d/a\n");
}

TEST_MAIN("diff")
