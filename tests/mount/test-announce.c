/* What programs see after the layer was rolled back below them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/mount/stage.h"

static void roll_back(struct stage *s, const struct object_id *root)
{
	struct layer_changes changes = { 0 };
	struct err err = { 0 };

	CHECK_OK(live_roll_back(s->live.l, root, NULL, NULL, &changes, &err), &err);
	CHECK_OK(mount_announce(s->m, &changes, &err), &err);
	layer_changes_done(&changes);
}

static void check_names(const struct stage *s, const char *dir, const char *want)
{
	AUTO_FREE char *have = stage_names(s, dir);

	CHECK_STR(have, want);
}

/* The kernel has seen everything twice: names, attributes, listings, pages. */
static void look_around(const struct stage *s)
{
	for (int i = 0; i < 2; i++) {
		free(stage_names(s, ""));
		free(stage_names(s, "d"));
		IGNORE_RESULT(stage_has(s, "changed", ""), "it is read for the kernel to remember");
		IGNORE_RESULT(stage_has(s, "d/changed", ""), "likewise");
		IGNORE_RESULT(stage_there(s, "removed"), "likewise");
		IGNORE_RESULT(stage_there(s, "added"), "likewise");
	}
}

TEST(nothing_old_is_seen_once_the_announcement_is_made)
{
	struct stage s = { 0 };
	struct object_id root;
	char target[16] = "";

	stage_open(&s, "all");
	CHECK_EQ(mkdir(stage_at(&s, "d"), 0755), 0);
	stage_put(&s, "changed", "old");
	stage_put(&s, "d/changed", "old below");
	stage_put(&s, "removed", "was there");
	stage_put(&s, "same", "same");
	CHECK_EQ(symlink("old", stage_at(&s, "link")), 0);
	CHECK_EQ(mkdir(stage_at(&s, "gone"), 0755), 0);
	root = live_persist(&s.live);

	stage_put(&s, "changed", "new and longer");
	stage_put(&s, "d/changed", "new below");
	CHECK_EQ(unlink(stage_at(&s, "removed")), 0);
	stage_put(&s, "added", "x");
	CHECK_EQ(unlink(stage_at(&s, "link")), 0);
	CHECK_EQ(symlink("new", stage_at(&s, "link")), 0);
	CHECK_EQ(rmdir(stage_at(&s, "gone")), 0);
	stage_put(&s, "gone", "now a file");
	look_around(&s);

	roll_back(&s, &root);
	CHECK(stage_has(&s, "changed", "old"));
	CHECK(stage_has(&s, "d/changed", "old below"));
	CHECK(stage_has(&s, "removed", "was there"));
	CHECK(stage_has(&s, "same", "same"));
	CHECK(!stage_there(&s, "added"));
	CHECK_EQ(readlink(stage_at(&s, "link"), target, sizeof(target) - 1), 3);
	CHECK_STR(target, "old");
	check_names(&s, "gone", "");
	check_names(&s, "", " changed d gone link removed same");
	check_names(&s, "d", " changed");
	stage_close(&s);
}

TEST(a_listing_is_dropped_though_the_kernel_never_heard_of_the_name)
{
	struct stage s = { 0 };
	struct object_id root;

	stage_open(&s, "unheard");
	live_put(&s.live, "a", "x");
	live_put(&s.live, "b", "x");
	root = live_persist(&s.live);
	CHECK_EQ(live_try_unlink(&s.live, "b"), 0);
	for (int i = 0; i < 3; i++)
		check_names(&s, "", " a");

	roll_back(&s, &root);
	check_names(&s, "", " a b");
	stage_close(&s);
}

TEST(who_has_a_file_open_keeps_it_and_a_working_directory_stays_one)
{
	struct stage s = { 0 };
	AUTO_CLOSE int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct object_id root;
	char have[32] = "";
	int fd, made;

	stage_open(&s, "open");
	CHECK_EQ(mkdir(stage_at(&s, "d"), 0755), 0);
	stage_put(&s, "d/f", "old");
	root = live_persist(&s.live);
	stage_put(&s, "d/f", "newer");
	stage_put(&s, "d/added", "added");
	fd = open(stage_at(&s, "d/f"), O_RDONLY | O_CLOEXEC);
	made = open(stage_at(&s, "d/added"), O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && made >= 0);
	CHECK_EQ(chdir(stage_at(&s, "d")), 0);

	roll_back(&s, &root);
	CHECK_EQ(pread(fd, have, sizeof(have), 0), 5);
	CHECK_STR(have, "newer");
	CHECK_EQ(pread(made, have, sizeof(have), 0), 5);
	CHECK_STR(have, "added");
	CHECK_EQ(access("added", F_OK), -1);
	CHECK_EQ(access("f", F_OK), 0);
	CHECK(stage_has(&s, "d/f", "old"));

	CHECK_EQ(fchdir(here), 0);
	close(fd);
	close(made);
	stage_close(&s);
}

TEST(a_name_that_came_back_can_be_opened_for_writing_at_once)
{
	struct stage s = { 0 };
	struct layer_changes changes = { 0 };
	struct object_id root;
	struct err err = { 0 };
	int fd;

	stage_open(&s, "stale");
	stage_put(&s, "f", "old");
	root = live_persist(&s.live);
	CHECK_EQ(unlink(stage_at(&s, "f")), 0);
	CHECK(!stage_there(&s, "f")); /* remembered */

	/* Nothing is announced yet: the kernel will ask to create what is there. */
	CHECK_OK(live_roll_back(s.live.l, &root, NULL, NULL, &changes, &err), &err);
	fd = open(stage_at(&s, "f"), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "er", 2), 2);
	close(fd);
	CHECK(stage_has(&s, "f", "older"));
	CHECK_OK(mount_announce(s.m, &changes, &err), &err);
	layer_changes_done(&changes);
	stage_close(&s);
}

TEST(a_connection_that_is_gone_needs_no_announcement)
{
	struct layer_changed_name name = { .dir = LAYER_ROOT, .name = (char[]){ "f" } };
	uint64_t dir = LAYER_ROOT;
	const struct layer_changes changes = {
		.names = &name, .n_names = 1, .dirs = &dir, .n_dirs = 1
	};
	struct stage s = { 0 };
	struct err err = { 0 };

	stage_open(&s, "gone");
	if (umount(s.path) < 0) {
		stage_close(&s);
		TEST_SKIP("only root may unmount it by hand");
	}
	CHECK(stage_wait(stage_ended, &s));
	CHECK_OK(mount_announce(s.m, &changes, &err), &err);
	stage_close(&s);
}

TEST(many_names_are_all_announced)
{
	struct stage s = { 0 };
	struct object_id root;
	char name[32];

	stage_open(&s, "many");
	stage_put(&s, "f", "x");
	root = live_persist(&s.live);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		stage_put(&s, name, "x");
	}
	roll_back(&s, &root);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		CHECK(!stage_there(&s, name));
	}
	check_names(&s, "", " f");
	stage_close(&s);
}

TEST_MAIN("announce")
