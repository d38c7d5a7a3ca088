/*
 * What is left out, what is refused, and what is reported.
 */
#include "snapshot/capture/capture.h"

#include <sys/wait.h>

#include "snapshot/text/ignore.h"
#include "tests/unit/snapshot/capture/capture-fixture.h"

TEST(an_excluded_directory_is_left_out_by_whatever_name_it_is_met)
{
	CLEANUP(scene_done) struct scene sc = scene_new("exclude");
	const char *const exclude[] = { test_path("exclude/a/store"), test_path("exclude/alias"),
					test_path("exclude/not-there") };
	const struct capture_options options = { .exclude = exclude, .n_exclude = 3 };

	scene_mkdir(&sc, "a");
	scene_mkdir(&sc, "a/store");
	scene_mkdir(&sc, "a/store/below");
	scene_mkdir(&sc, "b");
	scene_mkdir(&sc, "b/store");
	scene_mkdir(&sc, "real");
	CHECK_EQ(symlinkat("real", sc.fd, "alias"), 0);
	scene_capture_with(&sc, &options);
	CHECK(scene_has(&sc, "a"));
	CHECK(!scene_has(&sc, "a/store"));
	CHECK(scene_has(&sc, "b/store"));
	CHECK(scene_has(&sc, "alias"));
	CHECK(!scene_has(&sc, "real"));
	CHECK_EQ(sc.stats.dirs, 4);
}

TEST(what_is_excluded_must_be_a_directory_below)
{
	CLEANUP(scene_done) struct scene sc = scene_new("exclude-wrong");
	const char *exclude[] = { test_path("exclude-wrong/f") };
	const struct capture_options options = { .exclude = exclude, .n_exclude = 1 };

	scene_text(&sc, "f", "text");
	scene_fails(&sc, &options, -ENOTDIR, "only a directory can be left out");
	exclude[0] = sc.path;
	scene_fails(&sc, &options, -EINVAL, "is itself to be left out");
}

static void tell(const struct capture_stats *so_far, void *ctx)
{
	uint64_t *last = ctx, now = so_far->files + so_far->dirs;

	CHECK(now >= *last);
	*last = now;
}

TEST(progress_is_told_and_at_the_end_it_is_all)
{
	CLEANUP(scene_done) struct scene sc = scene_new("progress");
	uint64_t last = 0;
	const struct capture_options options = { .progress = tell, .progress_ctx = &last };
	char name[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK_EQ(symlinkat("x", sc.fd, name), 0);
	}
	scene_capture_with(&sc, &options);
	CHECK_EQ(last, 1001);
}

static bool after_three(void *ctx)
{
	unsigned *asked = ctx;

	return ++*asked > 3;
}

static void ignore_progress(const struct capture_stats *so_far, void *ctx)
{
	(void)so_far;
	(void)ctx;
}

TEST(a_capture_that_nobody_wants_any_more_ends)
{
	CLEANUP(scene_done) struct scene sc = scene_new("stop");
	unsigned asked = 3;
	struct capture_options options = { .stop = after_three, .stop_ctx = &asked };

	scene_text(&sc, "f", "text");
	scene_fails(&sc, &options, -ECONNABORTED, "nobody waits for it any more");
	asked = 3;
	options.progress = ignore_progress;
	scene_fails(&sc, &options, -ECONNABORTED, "nobody waits for it any more");
	CHECK(asked > 3);
}

/* --- what cannot be captured ------------------------------------------------------------ */

TEST(only_a_directory_can_be_captured_and_no_symlink_to_one)
{
	CLEANUP(scene_done) struct scene sc = scene_new("top");

	scene_text(&sc, "file", "text");
	CHECK_EQ(symlinkat("sub", sc.fd, "link"), 0);
	scene_mkdir(&sc, "sub");
	sc.path = test_path("top/file");
	scene_fails(&sc, NULL, -ENOTDIR, "top/file': cannot be opened: Not a directory");
	sc.path = test_path("top/link");
	scene_fails(&sc, NULL, -ENOTDIR, "top/link'");
	sc.path = test_path("top/absent");
	scene_fails(&sc, NULL, -ENOENT, "top/absent': cannot be opened: No such file");
}

/* Run in a child, as nobody if we are root: root may read everything. */
static void as_nobody(void (*fn)(void))
{
	pid_t pid;
	int status;

	CHECK_EQ(chmod(test_dir(), 0777), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
		fn();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void capture_unreadable(void)
{
	CLEANUP(scene_done) struct scene sc = scene_new("unreadable");

	scene_mkdir(&sc, "d");
	scene_text(&sc, "d/se\ncret", "text");
	scene_capture(&sc);
	CHECK_EQ(fchmodat(sc.fd, "d/se\ncret", 0, 0), 0);
	scene_fails(&sc, NULL, -EACCES, "unreadable/d/se\\x0acret': cannot be opened: Permission");
	CHECK_EQ(unlinkat(sc.fd, "d/se\ncret", 0), 0);
	CHECK_EQ(fchmodat(sc.fd, "d", 0, 0), 0);
	scene_fails(&sc, NULL, -EACCES, "unreadable/d': cannot be opened: Permission denied");
	CHECK_EQ(fchmodat(sc.fd, "d", 0755, 0), 0);
}

TEST(what_cannot_be_read_fails_the_capture_with_its_path)
{
	as_nobody(capture_unreadable);
}

static void capture_unreadable_far_down(void)
{
	CLEANUP(scene_done) struct scene sc = scene_new("far");
	char path[512];

	snprintf(path, sizeof(path), "%0200d", 0);
	scene_mkdir(&sc, path);
	snprintf(path, sizeof(path), "%0200d/%0200d", 0, 0);
	scene_mkdir(&sc, path);
	snprintf(path, sizeof(path), "%0200d/%0200d/f", 0, 0);
	scene_text(&sc, path, "text");
	CHECK_EQ(fchmodat(sc.fd, path, 0, 0), 0);
	scene_fails(&sc, NULL, -EACCES, "'.../f': cannot be opened: Permission denied");
}

TEST(of_a_path_too_long_for_a_sentence_the_end_is_shown)
{
	as_nobody(capture_unreadable_far_down);
}

static void fill_unreadable(struct scene *sc)
{
	char path[64];

	scene_text(sc, "fine", "text");
	scene_mkdir(sc, "closed");
	scene_text(sc, "closed/f", "text");
	CHECK_EQ(fchmodat(sc->fd, "closed", 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "secret-%d", i);
		scene_text(sc, path, "text");
		CHECK_EQ(fchmodat(sc->fd, path, 0, 0), 0);
	}
	CHECK_EQ(linkat(sc->fd, "secret-0", sc->fd, "again", 0), 0);
}

static void capture_what_can_be_read(void)
{
	CLEANUP(scene_done) struct scene sc = scene_new("partly");
	const struct capture_options skip = { .skip_unreadable = true };

	fill_unreadable(&sc);
	scene_fails(
	    &sc, NULL, -EACCES,
	    "partly/again': cannot be opened: Permission denied (and 4 more cannot be read)");
	CHECK_EQ(sc.unread.n, 5);
	scene_capture_with(&sc, &skip);
	CHECK_EQ(sc.unread.n, 5);
	CHECK_STR(sc.unread.list[0].path, "again");
	CHECK_STR(sc.unread.list[1].path, "closed");
	CHECK_STR(sc.unread.list[4].path, "secret-2");
	CHECK_STR(sc.unread.list[4].why, "cannot be opened: Permission denied");
	CHECK_EQ(sc.unread.list[4].code, -EACCES);
	CHECK(scene_has(&sc, "fine"));
	CHECK(!scene_has(&sc, "closed"));
	CHECK(!scene_has(&sc, "again"));
	CHECK_EQ(sc.stats.files, 1);

	/* Signatures hold nothing of them, so they turn up when they can be read. */
	sc.incremental = true;
	scene_capture_with(&sc, &skip);
	CHECK_EQ(fchmodat(sc.fd, "closed", 0755, 0), 0);
	CHECK_EQ(fchmodat(sc.fd, "secret-0", 0644, 0), 0);
	scene_capture_with(&sc, &skip);
	CHECK_EQ(sc.unread.n, 2);
	CHECK(scene_has(&sc, "closed/f"));
	CHECK(scene_has(&sc, "again"));
}

TEST(what_cannot_be_read_is_left_out_and_told_if_that_is_wanted)
{
	as_nobody(capture_what_can_be_read);
}

static void capture_too_many(void)
{
	CLEANUP(scene_done) struct scene sc = scene_new("too-many");
	const struct capture_options skip = { .skip_unreadable = true };
	char path[64];

	for (int i = 0; i < CAPTURE_UNREAD_MAX + 7; i++) {
		snprintf(path, sizeof(path), "%d", i);
		scene_text(&sc, path, "");
		CHECK_EQ(fchmodat(sc.fd, path, 0, 0), 0);
	}
	scene_capture_with(&sc, &skip);
	CHECK_EQ(sc.unread.n, CAPTURE_UNREAD_MAX);
	CHECK_EQ(sc.unread.more, 7);
	scene_fails(&sc, NULL, -EACCES, "(and 1006 more cannot be read)");
}

TEST(of_very_many_that_cannot_be_read_the_first_are_listed_and_all_counted)
{
	as_nobody(capture_too_many);
}

/* --- what rules leave out --------------------------------------------------------------- */

TEST(what_snapignore_names_is_left_out)
{
	CLEANUP(scene_done) struct scene sc = scene_new("rules");

	sc.incremental = true;
	scene_text(&sc, ".snapignore", "*.o\nbuild/\n/top\n!keep.o\n.snap*\n");
	scene_mkdir(&sc, "build");
	scene_text(&sc, "build/keep.o", "");
	scene_mkdir(&sc, "src");
	scene_text(&sc, "src/a.o", "");
	scene_text(&sc, "src/keep.o", "");
	scene_text(&sc, "src/top", "");
	scene_text(&sc, "src/build", "a file");
	scene_text(&sc, "top", "");
	scene_mkdir(&sc, "lib");
	scene_text(&sc, "lib/.snapignore", "!*.o\ntop\n");
	scene_text(&sc, "lib/a.o", "");
	scene_text(&sc, "lib/top", "");
	scene_capture(&sc);
	CHECK(scene_has(&sc, ".snapignore"));
	CHECK(!scene_has(&sc, "build"));
	CHECK(!scene_has(&sc, "src/a.o"));
	CHECK(scene_has(&sc, "src/keep.o"));
	CHECK(scene_has(&sc, "src/top"));
	CHECK(scene_has(&sc, "src/build"));
	CHECK(!scene_has(&sc, "top"));
	CHECK(scene_has(&sc, "lib/a.o"));
	CHECK(!scene_has(&sc, "lib/top"));

	/* Other rules hold from the next capture on, also for what did not change. */
	scene_text(&sc, ".snapignore", "src\n");
	scene_capture(&sc);
	CHECK(scene_has(&sc, "build/keep.o"));
	CHECK(scene_has(&sc, "top"));
	CHECK(!scene_has(&sc, "src"));
	CHECK(!scene_has(&sc, "lib/top"));
	CHECK_EQ(unlinkat(sc.fd, ".snapignore", 0), 0);
	scene_capture(&sc);
	CHECK(scene_has(&sc, "src/a.o"));
}

TEST(a_file_of_rules_that_is_too_large_or_none_is_not_followed)
{
	CLEANUP(scene_done) struct scene sc = scene_new("rules-odd");
	AUTO_CLOSE int fd = openat(sc.fd, ".snapignore", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	scene_text(&sc, "f", "");
	CHECK_EQ(ftruncate(fd, (off_t)IGNORE_SIZE_MAX + 1), 0);
	scene_fails(&sc, NULL, -EFBIG, "rules-odd/.snapignore': has more than 1048576 bytes");
	CHECK_EQ(unlinkat(sc.fd, ".snapignore", 0), 0);
	scene_text(&sc, "../rules-text", "f");
	CHECK_EQ(symlinkat("../rules-text", sc.fd, ".snapignore"), 0);
	scene_capture(&sc);
	CHECK(scene_has(&sc, "f"));
	CHECK_EQ(unlinkat(sc.fd, ".snapignore", 0), 0);
	scene_mkdir(&sc, ".snapignore");
	scene_capture(&sc);
	CHECK(scene_has(&sc, "f"));
}

TEST_MAIN("capture-refuse")
