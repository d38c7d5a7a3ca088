#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
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
