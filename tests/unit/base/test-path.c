#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"

TEST(a_name_is_one_component_that_can_stand_in_a_directory)
{
	char longest[PATH_NAME_MAX + 1];

	memset(longest, 'a', sizeof(longest));
	CHECK(path_name_valid("a", 1));
	CHECK(path_name_valid("...", 3));
	CHECK(path_name_valid(".a", 2));
	CHECK(path_name_valid("..a", 3));
	CHECK(path_name_valid("\xff\n", 2));
	CHECK(path_name_valid(longest, PATH_NAME_MAX));
	CHECK(!path_name_valid(longest, PATH_NAME_MAX + 1));
	CHECK(!path_name_valid("", 0));
	CHECK(!path_name_valid(".", 1));
	CHECK(!path_name_valid("..", 2));
	CHECK(!path_name_valid("a/b", 3));
	CHECK(!path_name_valid("/", 1));
	CHECK(!path_name_valid("a\0b", 3));
}

TEST(join_puts_one_slash_between)
{
	static const char *const rows[][3] = {
		{ "/a", "b", "/a/b" },   { "/a/", "b", "/a/b" }, { "/", "b", "/b" },
		{ "a", "b/c", "a/b/c" }, { "", "b", "b" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *got = path_join(rows[i][0], rows[i][1]);

		CHECK_STR(got, rows[i][2]);
	}
}

TEST(clean_makes_absolute_and_resolves_dots_by_text)
{
	static const char *const rows[][3] = {
		{ "/w", "a", "/w/a" },
		{ "/w", "", "/w" },
		{ "/w", ".", "/w" },
		{ "/w", "..", "/" },
		{ "/w", "../..", "/" },
		{ "/w", "../../x", "/x" },
		{ "/w", "/a//b/./c/../d/", "/a/b/d" },
		{ "/w", "/", "/" },
		{ "/w", "//", "/" },
		{ "/w", "/..", "/" },
		{ "/", "a", "/a" },
		{ "/", "", "/" },
		{ "/w//x/../y/", "b", "/w/y/b" },
		{ "/w", "...", "/w/..." },
		{ "/w", "..a/.b", "/w/..a/.b" },
		{ "/w", "a/..", "/w" },
		{ "w", "a", "/w/a" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *got = path_clean(rows[i][0], rows[i][1]);

		CHECK_STR(got, rows[i][2]);
	}
}

TEST(below_means_the_directory_or_something_in_it)
{
	CHECK(path_is_below("/a", "/a"));
	CHECK(path_is_below("/a/b/c", "/a"));
	CHECK(path_is_below("/a", "/"));
	CHECK(path_is_below("/", "/"));
	CHECK(!path_is_below("/ab", "/a"));
	CHECK(!path_is_below("/", "/a"));
	CHECK(!path_is_below("/b/a", "/a"));
	CHECK(!path_is_below("/a", "/a/b"));
}

TEST(within_is_the_same_from_a_top)
{
	CHECK(path_is_within("a/b", "a"));
	CHECK(path_is_within("a", ""));
	CHECK(path_is_within("", ""));
	CHECK(!path_is_within("a", "/"));
	CHECK(!path_is_within("ab", "a"));
	CHECK(!path_is_within("", "a"));
}

TEST(base_is_the_last_component)
{
	CHECK_STR(path_base("/a/b"), "b");
	CHECK_STR(path_base("/a"), "a");
	CHECK_STR(path_base("a"), "a");
	CHECK_STR(path_base("/"), "/");
}

TEST(make_dirs_makes_what_is_missing)
{
	const char *path = test_path("x//y/z/");
	struct err err = { 0 };
	struct stat st;
	mode_t old = umask(0);

	CHECK_OK(path_make_dirs(path, 0750, &err), &err);
	umask(old);
	CHECK_EQ(stat(test_path("x/y"), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0750);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0750);
	CHECK_OK(path_make_dirs(path, 0700, &err), &err);
	CHECK_OK(path_make_dirs("/", 0700, &err), &err);
	CHECK_OK(path_make_dirs(test_path("x/y/z/deeper"), 0700, &err), &err);
	CHECK_EQ(err.code, 0);
}

/* The linker puts this in the place of the module's call (--wrap). */
int __wrap_fsync(int fd);

static struct stat synced[8]; /* the first of them */
static unsigned n_synced;
static int fsync_errno; /* 0: it works */
static unsigned fsync_fails_at;

int __wrap_fsync(int fd)
{
	if (n_synced < ARRAY_LEN(synced))
		CHECK_EQ(fstat(fd, &synced[n_synced]), 0);
	if (++n_synced != fsync_fails_at)
		return 0;
	errno = fsync_errno;
	return -1;
}

/* Let the n-th sync from now on fail; 0: none. */
static void watch_syncs(unsigned fails_at, int errnum)
{
	n_synced = 0;
	fsync_fails_at = fails_at;
	fsync_errno = errnum;
}

static void check_synced(unsigned i, const char *path)
{
	struct stat st;

	CHECK_EQ(stat(path, &st), 0);
	CHECK(st.st_dev == synced[i].st_dev && st.st_ino == synced[i].st_ino);
}

TEST(make_dirs_syncs_the_parent_of_each_it_makes_and_no_other)
{
	struct err err = { 0 };

	CHECK_OK(path_make_dirs(test_path("sync"), 0700, &err), &err);
	watch_syncs(0, 0);
	CHECK_OK(path_make_dirs(test_path("sync/a//b/c/"), 0700, &err), &err);
	CHECK_EQ(n_synced, 3);
	check_synced(0, test_path("sync"));
	check_synced(1, test_path("sync/a"));
	check_synced(2, test_path("sync/a/b"));
	CHECK_OK(path_make_dirs(test_path("sync/a/b/c"), 0700, &err), &err);
	CHECK_EQ(n_synced, 3);
}

TEST(a_directory_whose_name_cannot_be_synced_is_not_made)
{
	struct err err = { 0 };

	watch_syncs(2, EIO);
	CHECK_EQ(path_make_dirs(test_path("eio/a/b"), 0700, &err), -EIO);
	CHECK_HAS(err.msg, "syncing the directory of '");
	CHECK_HAS(err.msg, "/eio/a': Input/output error");
	CHECK_EQ(access(test_path("eio"), F_OK), 0);
	CHECK_EQ(access(test_path("eio/a"), F_OK), -1);

	/* So the next call knows what is left to do. */
	watch_syncs(0, 0);
	CHECK_OK(path_make_dirs(test_path("eio/a/b"), 0700, &err), &err);
	CHECK_EQ(n_synced, 2);
}

TEST(a_file_system_that_syncs_no_directories_is_no_failure)
{
	struct err err = { 0 };

	watch_syncs(1, EINVAL);
	CHECK_OK(path_make_dirs(test_path("einval"), 0700, &err), &err);
	watch_syncs(1, ENOTSUP);
	CHECK_OK(path_make_dirs(test_path("enotsup"), 0700, &err), &err);
	CHECK_EQ(n_synced, 1);
}

/* In a child, as nobody if we are root: root may read everything. */
static void make_below_unreadable(void)
{
	const char *dir = test_path("dark"), *new = test_path("dark/new");
	struct err err = { 0 };

	CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
	CHECK_EQ(mkdir(dir, 0300), 0);
	CHECK_EQ(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1);
	watch_syncs(0, 0);
	CHECK_OK(path_make_dirs(new, 0700, &err), &err);
	CHECK_EQ(n_synced, 1);
	check_synced(0, new);
	CHECK_OK(path_make_dirs(test_path("dark/shut"), 0300, &err), &err);
	CHECK_EQ(n_synced, 1);

	/* What is there is not opened: it need only be searched. */
	CHECK_EQ(chmod(dir, 0100), 0);
	CHECK_OK(path_make_dirs(new, 0700, &err), &err);
	CHECK_EQ(n_synced, 1);
	CHECK_OK(path_make_dirs(test_path("dark/new/deeper"), 0700, &err), &err);
	CHECK_EQ(n_synced, 2);
	check_synced(1, new);
	CHECK_EQ(path_make_dirs(test_path("dark/other"), 0700, &err), -EACCES);
}

TEST(make_dirs_works_below_what_may_be_searched_and_not_read)
{
	int status;
	pid_t pid;

	CHECK_EQ(chmod(test_dir(), 0777), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		make_below_unreadable();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

TEST(make_dirs_works_below_the_working_directory)
{
	AUTO_CLOSE int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = { 0 };
	struct stat st;

	CHECK(back >= 0);
	CHECK_EQ(chdir(test_dir()), 0);
	CHECK_OK(path_make_dirs("r/s", 0700, &err), &err);
	CHECK_EQ(fchdir(back), 0);
	CHECK_EQ(stat(test_path("r/s"), &st), 0);
}

TEST(make_dirs_names_what_stands_in_the_way)
{
	AUTO_CLOSE int fd = open(test_path("file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct err err = { 0 };

	CHECK(fd >= 0);
	CHECK_EQ(path_make_dirs(test_path("file"), 0700, &err), -ENOTDIR);
	CHECK_HAS(err.msg, "/file' is not a directory");
	CHECK_EQ(path_make_dirs(test_path("file/below"), 0700, &err), -ENOTDIR);
	CHECK_HAS(err.msg, "/file' is not a directory");
	CHECK_EQ(path_make_dirs("/proc/no-such/dir", 0700, &err), -ENOENT);
	CHECK_STR(err.msg, "creating directory '/proc/no-such': No such file or directory");
	CHECK_EQ(path_make_dirs("", 0700, &err), -ENOENT);
}

static void check_shown(const char *name, size_t len, const char *want)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	CHECK_EQ(buf_append_str(&b, "="), 0);
	CHECK_EQ(path_append_shown(&b, name, len), 0);
	CHECK_STR(buf_str(&b) + 1, want);
}

TEST(people_are_shown_what_they_could_not_see_and_programs_get_it)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT;

	check_shown("ad\xe2\x80\x8bmin", 8, "ad\\xe2\\x80\\x8bmin");
	CHECK_EQ(path_append_escaped(&b, "ad\xe2\x80\x8bmin\n", 9), 0);
	CHECK_STR(buf_str(&b), "ad\xe2\x80\x8bmin\\x0a");
}

TEST(a_name_that_was_shown_can_be_typed_back)
{
	static const char *const none[] = {
		"plain", "a\\b", "a\\x4", "a\\xzz", "a\\x00", "\\x41\\"
	};
	static const char *const names[] = {
		"a\nb", "\\", "a\\x41", "\xff\xfe", "ad\xe2\x80\x8bmin", "\x1b[8m"
	};

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		char *name = NULL;

		CHECK_EQ(path_unescape(none[i], &name), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(buf_done) struct buf shown = BUF_INIT;
		AUTO_FREE char *name = NULL;

		CHECK_EQ(path_append_shown(&shown, names[i], strlen(names[i])), 0);
		CHECK_EQ(path_unescape(buf_str(&shown), &name), 1);
		CHECK_STR(name, names[i]);
	}
}

TEST(a_shown_name_is_printable_and_unambiguous)
{
	check_shown("plain name~", 11, "plain name~");
	check_shown("gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80", 13,
		    "gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80");
	check_shown("a\nb\tc\x1b[0m\x7f", 10, "a\\x0ab\\x09c\\x1b[0m\\x7f");
	check_shown("a\\x0a", 5, "a\\x5cx0a");
	check_shown("\xff\xc3(", 3, "\\xff\\xc3(");
	check_shown("\xe2\x82", 2, "\\xe2\\x82");
	check_shown("a\0b", 3, "a\\x00b");
	check_shown("", 0, "");
}

TEST_MAIN("path")
