/*
 * Trees that are as they were are not opened, and that is all that a glance at them changes: whatever
 * happened before it or in the middle of it, the root is one that a capture without signatures gives.
 */
#include "snapshot/capture/capture.h"

#include <stdatomic.h>
#include <time.h>

#include "tests/unit/snapshot/capture/capture-fixture.h"

/* What the linker puts in the place of the real ones (--wrap), and what they do then. */
int __real_dir_open(int parent_fd, const char *name);
int __wrap_dir_open(int parent_fd, const char *name);
int __real_fstatat64(int dirfd, const char *path, struct stat *st, int flags);
int __wrap_fstatat64(int dirfd, const char *path, struct stat *st, int flags);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

static atomic_uint opens;

/* What was written a moment ago is fresh however long ago that is on this machine. */
static bool clock_is_late;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	const int r = __real_clock_gettime(clock, ret);

	if (clock_is_late)
		ret->tv_sec -= 3600;
	return r;
}

static struct {
	struct scene *sc;
	const char *path; /* before the first look at this, */
	void (*play)(struct scene *sc);
} hook;

int __wrap_dir_open(int parent_fd, const char *name)
{
	opens++;
	return __real_dir_open(parent_fd, name);
}

int __wrap_fstatat64(int dirfd, const char *path, struct stat *st, int flags)
{
	if (hook.path && strcmp(hook.path, path) == 0) {
		hook.path = NULL;
		hook.play(hook.sc);
	}
	return __real_fstatat64(dirfd, path, st, flags);
}

static struct scene scene_captured(const char *name)
{
	struct scene sc = scene_new(name);

	sc.incremental = true;
	scene_mkdir(&sc, "a");
	scene_mkdir(&sc, "a/b");
	scene_mkdir(&sc, "a/b/c");
	scene_mkdir(&sc, "d");
	scene_text(&sc, "a/one", "one");
	scene_text(&sc, "a/b/two", "two");
	scene_text(&sc, "a/b/c/three", "three");
	scene_text(&sc, "d/four", "four");
	CHECK_EQ(symlinkat("one", sc.fd, "a/sym"), 0);
	scene_settle();
	scene_capture(&sc);
	return sc;
}

/* As one without signatures; `opened` directories are opened for it. */
static void capture_again(struct scene *sc, unsigned opened)
{
	struct object_id whole;

	opens = 0;
	scene_capture(sc);
	CHECK_EQ(opens, opened);
	whole = scene_capture_whole(sc);
	CHECK(object_id_equal(&whole, &sc->id));
}

TEST(of_a_tree_that_is_as_it_was_the_top_alone_is_opened)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("same");
	const struct object_id first = sc.id;

	capture_again(&sc, 1);
	CHECK(object_id_equal(&first, &sc.id));
	CHECK_EQ(sc.stats.files, 5);
	CHECK_EQ(sc.stats.dirs, 5);
	CHECK_EQ(sc.stats.bytes, 3 + 3 + 5 + 4);
}

TEST(of_a_tree_only_what_leads_to_a_change_is_opened)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("changed");

	scene_text(&sc, "a/b/two", "TWO");
	capture_again(&sc, 3); /* the top, a, a/b */
	scene_settle();
	scene_capture(&sc);
	CHECK_EQ(fchmodat(sc.fd, "d", 0700, 0), 0);
	capture_again(&sc, 2); /* the top, d */
	scene_settle();
	scene_capture(&sc);
	CHECK_EQ(unlinkat(sc.fd, "a/b/c/three", 0), 0);
	capture_again(&sc, 4);
	CHECK_EQ(sc.stats.files, 4);
}

TEST(a_tree_that_is_large_is_opened_and_what_is_small_in_it_is_not)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("large");
	char path[64];

	scene_mkdir(&sc, "large");
	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "large/%d", i / 30);
		if (i % 30 == 0)
			scene_mkdir(&sc, path);
		snprintf(path, sizeof(path), "large/%d/%d", i / 30, i);
		scene_text(&sc, path, path);
	}
	scene_settle();
	scene_capture(&sc);
	capture_again(&sc, 2);
	CHECK_EQ(sc.stats.files, 305);
	CHECK_EQ(sc.stats.dirs, 16);
}

TEST(a_tree_with_long_paths_is_captured_as_it_is)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("long");
	CLEANUP(buf_done) struct buf path = BUF_INIT;

	for (int i = 0; i < 12; i++) {
		CHECK_EQ(buf_printf(&path, "%s%0200d", i > 0 ? "/" : "", i), 0);
		scene_mkdir(&sc, buf_str(&path));
	}
	CHECK_EQ(buf_append_str(&path, "/file"), 0);
	scene_text(&sc, buf_str(&path), "deep");
	scene_settle();
	scene_capture(&sc);
	opens = 0;
	scene_capture(&sc);
	CHECK(opens > 1 && opens < 13);
	scene_text(&sc, buf_str(&path), "DEEP");
	capture_again(&sc, 13);
}

TEST(rules_that_change_leave_out_what_did_not_change)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("rules");

	scene_text(&sc, "a/.snapignore", "three\n");
	scene_settle();
	capture_again(&sc, 4); /* the top, a and all in it */
	CHECK(!scene_has(&sc, "a/b/c/three"));
	scene_text(&sc, "a/.snapignore", "fifth\n");
	clock_is_late = true;
	scene_capture(&sc);
	clock_is_late = false;
	CHECK(scene_has(&sc, "a/b/c/three"));
	scene_settle();
	capture_again(&sc, 4); /* doubted: the rules were fresh */
	capture_again(&sc, 1);
	scene_text(&sc, "a/.snapignore", "three\n");
	capture_again(&sc, 4);
	CHECK(!scene_has(&sc, "a/b/c/three"));
}

TEST(what_is_to_be_left_out_from_now_on_is_left_out)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("excluded");
	const char *const exclude[] = { test_path("excluded/a/b") };
	const struct capture_options options = { .exclude = exclude, .n_exclude = 1 };

	scene_capture_with(&sc, &options);
	CHECK(!scene_has(&sc, "a/b"));
	CHECK(scene_has(&sc, "a/one"));
	scene_capture(&sc);
	CHECK(scene_has(&sc, "a/b/two"));
}

/* Nothing but the directory above it tells of a name that comes in with its directory. */
TEST(a_file_gets_another_name_with_the_directory_that_it_is_in)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("linked");

	CHECK_EQ(mkdir(test_path("coming"), 0755), 0);
	CHECK_EQ(linkat(sc.fd, "a/one", AT_FDCWD, test_path("coming/one"), 0), 0);
	scene_settle();
	capture_again(&sc, 2); /* the top, a */
	CHECK_EQ(renameat(AT_FDCWD, test_path("coming"), sc.fd, "came"), 0);
	capture_again(&sc, 3); /* the top, a, came */
	CHECK_EQ(sc.stats.files, 6);
	CHECK_EQ(sc.stats.bytes, 3 + 3 + 5 + 4);
}

/* --- in the middle of a glance ---------------------------------------------------------------- */

static void capture_disturbed(struct scene *sc, const char *path, void (*play)(struct scene *sc))
{
	hook.sc = sc;
	hook.path = path;
	hook.play = play;
	scene_capture(sc);
	CHECK(!hook.path);
}

static void exchange_for_decoy(struct scene *sc)
{
	CHECK_EQ(renameat(sc->fd, "a/b", AT_FDCWD, test_path("moved-b")), 0);
	CHECK_EQ(symlinkat(test_path("decoy"), sc->fd, "a/b"), 0);
}

TEST(a_directory_exchanged_for_a_symlink_during_a_glance_is_captured_as_one)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("decoyed");
	CLEANUP(buf_done) struct buf hold = BUF_INIT;
	struct object_id whole;

	CHECK_EQ(mkdir(test_path("decoy"), 0755), 0);
	scene_text(&sc, "../decoy/two", "2-2");
	scene_settle();
	capture_disturbed(&sc, "a/b/two", exchange_for_decoy);
	CHECK(S_ISLNK(scene_entry(&sc, "a/b", &hold).mode));
	whole = scene_capture_whole(&sc);
	CHECK(object_id_equal(&whole, &sc.id));
}

static void move_and_point_to_it(struct scene *sc)
{
	CHECK_EQ(renameat(sc->fd, "a/b", AT_FDCWD, test_path("moved-away")), 0);
	CHECK_EQ(symlinkat(test_path("moved-away"), sc->fd, "a/b"), 0);
}

/* The same files are met on the way through the symlink: what is captured existed a moment ago. */
TEST(a_directory_moved_during_a_glance_is_captured_as_it_was_and_then_as_it_is)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("moved");
	const struct object_id before = sc.id;
	struct object_id whole;

	capture_disturbed(&sc, "a/b/two", move_and_point_to_it);
	whole = scene_capture_whole(&sc);
	CHECK(object_id_equal(&before, &sc.id) || object_id_equal(&whole, &sc.id));
	scene_capture(&sc);
	CHECK(object_id_equal(&whole, &sc.id));
}

static void write_what_was_seen(struct scene *sc)
{
	scene_text(sc, "a/b/c/three", "THREE");
}

TEST(what_is_written_during_a_glance_is_captured_now_or_the_next_time)
{
	CLEANUP(scene_done) struct scene sc = scene_captured("written");

	capture_disturbed(&sc, "a/b/two", write_what_was_seen);
	scene_settle();
	scene_capture(&sc);
	capture_again(&sc, 1);
}

TEST_MAIN("capture-glance")
