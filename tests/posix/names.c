/*
 * Names: what every call that makes, finds or removes one says when it cannot.
 */
#include <sys/statfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "tests/posix/posix.h"

/* --- calls that make a name, and calls that need one ---------------------------------------- */

static int by_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? fd : close(fd);
}

static int by_mkdir(const char *path)
{
	return mkdir(path, 0755);
}

static int by_symlink(const char *path)
{
	return symlink("anywhere", path);
}

static int by_link(const char *path)
{
	return link("source", path);
}

static int by_mkfifo(const char *path)
{
	return mkfifo(path, 0644);
}

static int by_mknod(const char *path)
{
	return mknod(path, S_IFREG | 0644, 0);
}

static int by_rename(const char *path)
{
	int r;

	make_file("moving", "");
	r = renameat2(AT_FDCWD, "moving", AT_FDCWD, path, RENAME_NOREPLACE);
	return r;
}

static const struct maker {
	const char *name;
	int (*make)(const char *path);
} makers[] = {
	{ "open", by_open },     { "mkdir", by_mkdir },   { "symlink", by_symlink },
	{ "link", by_link },     { "mkfifo", by_mkfifo }, { "mknod", by_mknod },
	{ "rename", by_rename },
};

static int at_stat(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

static int at_lstat(const char *path)
{
	struct stat st;

	return lstat(path, &st);
}

static int at_statfs(const char *path)
{
	struct statfs st;

	return statfs(path, &st);
}

static int at_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? fd : close(fd);
}

static int at_chmod(const char *path)
{
	return chmod(path, 0755);
}

static int at_chown(const char *path)
{
	return chown(path, (uid_t)-1, (gid_t)-1);
}

static int at_lchown(const char *path)
{
	return lchown(path, (uid_t)-1, (gid_t)-1);
}

static int at_truncate(const char *path)
{
	return truncate(path, 0);
}

static int at_unlink(const char *path)
{
	return unlink(path);
}

static int at_rmdir(const char *path)
{
	return rmdir(path);
}

static int at_readlink(const char *path)
{
	char target[16];

	return (int)readlink(path, target, sizeof(target));
}

static int at_utimens(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static int at_access(const char *path)
{
	return access(path, F_OK);
}

static int at_chdir(const char *path)
{
	return chdir(path);
}

static int at_rename(const char *path)
{
	return rename(path, "elsewhere");
}

static int at_link(const char *path)
{
	return link(path, "elsewhere");
}

static int at_getxattr(const char *path)
{
	char value[16];

	return (int)getxattr(path, "user.none", value, sizeof(value));
}

static int at_setxattr(const char *path)
{
	return setxattr(path, "user.none", "v", 1, 0);
}

static const struct user {
	const char *name;
	int (*use)(const char *path);
	bool follows;
} users[] = {
	{ "stat", at_stat, true },          { "lstat", at_lstat, false },
	{ "statfs", at_statfs, true },      { "open", at_open, true },
	{ "chmod", at_chmod, true },        { "chown", at_chown, true },
	{ "lchown", at_lchown, false },     { "truncate", at_truncate, true },
	{ "unlink", at_unlink, false },     { "rmdir", at_rmdir, false },
	{ "readlink", at_readlink, false }, { "utimensat", at_utimens, true },
	{ "access", at_access, true },      { "chdir", at_chdir, true },
	{ "rename", at_rename, false },     { "link", at_link, false },
	{ "getxattr", at_getxattr, true },  { "setxattr", at_setxattr, true },
};

/* A path that names an existing directory n bytes long, and ends in `name`. */
static const char *long_path(size_t n, const char *name)
{
	static char path[2 * PATH_MAX];
	size_t len = strlen(name), i;

	for (i = 0; i + len + 1 < n; i += 2)
		memcpy(path + i, "./", 2);
	if (i + len < n)
		path[i++] = '/';
	memcpy(path + i, name, len + 1);
	return path;
}

static void setup_errors(void)
{
	make_file("source", "source\n");
	make_file("file", "file\n");
	NEED(mkdir("dir", 0755));
	NEED(symlink("loop-b", "loop-a"));
	NEED(symlink("loop-a", "loop-b"));
	NEED(symlink("self", "self"));
}

CASE(names, making_a_name_fails_as_it_should)
{
	size_t i;

	setup_errors();
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		int (*m)(const char *path) = makers[i].make;

		trying("%s", makers[i].name);
		FAILS(m("missing/new"), ENOENT);
		FAILS(m(""), ENOENT);
		FAILS(m("file/new"), ENOTDIR);
		FAILS(m("dir/../file/new"), ENOTDIR);
		FAILS(m("loop-a/new"), ELOOP);
		FAILS(m("self/new"), ELOOP);
		FAILS(m(name_of(256, 1)), ENAMETOOLONG);
		FAILS(m(name_of(1000, 1)), ENAMETOOLONG);
		FAILS(m(long_path(PATH_MAX, "new")), ENAMETOOLONG);
		IS(exists("new"), false);
	}
}

CASE(names, making_a_name_that_exists_fails_whatever_bears_it)
{
	size_t i;
	enum kind k;

	setup_errors();
	for (k = 0; k < KINDS; k++) {
		char path[32];

		snprintf(path, sizeof(path), "taken-%d", (int)k);
		make(k, path);
		for (i = 0; i < ARRAY_LEN(makers); i++) {
			ino_t before = ino_of(path);

			trying("%s over a %s", makers[i].name, kind_name(k));
			FAILS(makers[i].make(path), EEXIST);
			IS(ino_of(path), before);
		}
	}
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		trying("%s over dots", makers[i].name);
		FAILS(makers[i].make("dir/."), EEXIST, EBUSY, EISDIR);
		FAILS(makers[i].make("dir/.."), EEXIST, EBUSY, EISDIR);
		FAILS(makers[i].make("/"), EEXIST, EBUSY, EISDIR, EXDEV);
	}
}

CASE(names, using_a_name_fails_as_it_should)
{
	size_t i;

	setup_errors();
	for (i = 0; i < ARRAY_LEN(users); i++) {
		int (*u)(const char *path) = users[i].use;

		trying("%s", users[i].name);
		FAILS(u("missing"), ENOENT);
		FAILS(u("missing/name"), ENOENT);
		FAILS(u(""), ENOENT);
		FAILS(u("file/name"), ENOTDIR);
		FAILS(u("file/."), ENOTDIR);
		FAILS(u("file/.."), ENOTDIR);
		FAILS(u("loop-a/name"), ELOOP);
		FAILS(u(name_of(256, 1)), ENAMETOOLONG);
		FAILS(u(long_path(PATH_MAX, "name")), ENAMETOOLONG);
		if (users[i].follows) {
			FAILS(u("loop-a"), ELOOP);
			FAILS(u("self"), ELOOP);
		}
	}
}

CASE(names, names_and_paths_of_the_full_length_work)
{
	size_t i;
	struct stat st;

	make_file("source", "source\n");
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		const char *name = name_of(255, (unsigned)i);

		trying("%s", makers[i].name);
		OK(makers[i].make(name));
		OK(lstat(name, &st));
		OK(rename(name, name_of(255, (unsigned)i + 100)));
		FAILS(lstat(name, &st), ENOENT);
		OK(remove(name_of(255, (unsigned)i + 100)));
	}
	trying("a path of PATH_MAX - 1");
	OK(by_open(long_path(PATH_MAX - 1, "at-the-end")));
	OK(stat("at-the-end", &st));
}

CASE(names, any_byte_is_good_in_a_name)
{
	static const char *const odd[] = {
		"\xff\xfe",     "\xc3\x28", "\x80",         "a\nb",         " ",
		"...",          "..a",      "-rf",          "\x01\x02\x03", "caf\xc3\xa9",
		"cafe\xcc\x81", "CASE",     "case",         "back\\slash",  "*?[a]",
		".hidden",      "a\tb",     "\xed\xa0\x80", "$(touch x)",   "\"quoted\"'",
		"tilde~",       "#hash#",
	};
	char name[3];
	struct dirent *e;
	unsigned seen = 0, b;
	size_t i;
	DIR *d;

	for (i = 0; i < ARRAY_LEN(odd); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%zu", i);
		make_file(odd[i], text);
	}
	for (i = 0; i < ARRAY_LEN(odd); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%zu", i);
		CONTENT_IS(odd[i], text);
	}
	NEED(mkdir("bytes", 0755));
	NEED(chdir("bytes"));
	for (b = 1; b < 256; b++) {
		snprintf(name, sizeof(name), "x%c", (char)b);
		if (b != '/')
			make_file(name, "");
	}
	d = opendir(".");
	NEED(d ? 0 : -1);
	while ((e = readdir(d)))
		seen += e->d_name[0] == 'x' && strlen(e->d_name) == 2;
	closedir(d);
	IS(seen, 254);
	for (b = 1; b < 256; b++) {
		snprintf(name, sizeof(name), "x%c", (char)b);
		if (b != '/')
			OK(unlink(name));
	}
}

CASE(names, unlink_and_rmdir_tell_files_from_directories)
{
	make(FULL_DIR, "full");
	make(DIR_, "empty");
	make(FILE_, "file");
	make(LINK_DIR, "link");
	make(FIFO_, "fifo");
	FAILS(unlink("empty"), EISDIR);
	FAILS(unlink("full"), EISDIR);
	FAILS(unlink("empty/."), EISDIR);
	FAILS(unlink("empty/.."), EISDIR);
	FAILS(rmdir("file"), ENOTDIR);
	FAILS(rmdir("fifo"), ENOTDIR);
	FAILS(rmdir("link"), ENOTDIR);
	FAILS(rmdir("full"), ENOTEMPTY);
	FAILS(rmdir("empty/."), EINVAL);
	FAILS(rmdir("full/.."), ENOTEMPTY);
	FAILS(unlinkat(AT_FDCWD, "empty", 0), EISDIR);
	FAILS(unlinkat(AT_FDCWD, "file", AT_REMOVEDIR), ENOTDIR);
	FAILS(unlinkat(AT_FDCWD, "file", 0x8000000), EINVAL);
	OK(rmdir("empty"));
	OK(unlink("link"));
	OK(rmdir("link.to"));
	OK(unlink("full/inner"));
	OK(rmdir("full"));
	OK(unlink("fifo"));
	OK(unlink("file"));
}

CASE(names, a_slash_at_the_end_means_a_directory)
{
	struct stat st;

	make(FILE_, "file");
	make(DIR_, "dir");
	make(LINK_FILE, "to-file");
	make(LINK_DIR, "to-dir");
	FAILS(open("file/", O_RDONLY | O_CLOEXEC), ENOTDIR);
	FAILS(open("new/", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), EISDIR);
	FAILS(stat("file/", &st), ENOTDIR);
	FAILS(lstat("to-file/", &st), ENOTDIR);
	OK(lstat("to-dir/", &st));
	TRUE(S_ISDIR(st.st_mode));
	FAILS(unlink("file/"), ENOTDIR);
	FAILS(unlink("dir/"), EISDIR);
	FAILS(unlink("none/"), ENOENT);
	OK(mkdir("made/", 0755));
	OK(rmdir("made/"));
	FAILS(rmdir("to-dir/"), ENOTDIR);
	FAILS(rename("file", "renamed/"), ENOTDIR);
	FAILS(symlink("x", "s/"), ENOENT);
	FAILS(link("file", "l/"), ENOENT);
	FAILS(mkfifo("p/", 0644), ENOENT);
	OK(rename("dir/", "dir2/"));
	OK(rename("dir2", "dir/"));
	FAILS(truncate("file/", 0), ENOTDIR);
	OK(stat("dir//", &st));
	OK(stat("./dir/.//./", &st));
}

CASE(names, open_flags_say_what_may_be_there)
{
	int fd;

	make(FILE_, "file");
	make(DIR_, "dir");
	make(LINK_FILE, "link");
	make(LINK_NONE, "dangling");
	FAILS(open("none", O_RDONLY | O_CLOEXEC), ENOENT);
	FAILS(open("file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), EEXIST);
	FAILS(open("link", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), EEXIST);
	FAILS(open("dangling", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), EEXIST);
	FAILS(open("link", O_RDONLY | O_NOFOLLOW | O_CLOEXEC), ELOOP);
	FAILS(open("file", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ENOTDIR);
	FAILS(open("link", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ENOTDIR);
	FAILS(open("dir", O_WRONLY | O_CLOEXEC), EISDIR);
	FAILS(open("dir", O_RDWR | O_CLOEXEC), EISDIR);
	FAILS(open("dir", O_RDONLY | O_TRUNC | O_CLOEXEC), EISDIR);
	FAILS(open("dir", O_RDONLY | O_CREAT | O_CLOEXEC, 0644), EISDIR);
	FAILS(open("dangling", O_RDONLY | O_CLOEXEC), ENOENT);

	fd = (int)NEED(open("link", O_PATH | O_NOFOLLOW | O_CLOEXEC));
	TRUE(S_ISLNK(stat_fd(fd).st_mode));
	close(fd);
	fd = (int)NEED(open("dangling", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(fd);
	TRUE(exists("no-such-name"));
	fd = (int)NEED(open("dir", O_RDONLY | O_CLOEXEC));
	FAILS(read(fd, &(char){ 0 }, 1), EISDIR);
	FAILS(write(fd, "x", 1), EBADF);
	FAILS(ftruncate(fd, 0), EINVAL, EBADF);
	close(fd);
}

static void make_by_child(void *arg)
{
	make_file(arg, "child");
}

static void remove_by_child(void *arg)
{
	OK(unlink(arg));
}

CASE(names, a_name_that_was_missed_is_found_once_it_is_made)
{
	struct stat st;
	unsigned i;

	for (i = 0; i < 50; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name-%u", i % 5);
		FAILS(stat(name, &st), ENOENT);
		FAILS(open(name, O_RDONLY | O_CLOEXEC), ENOENT);
		switch (i % 5) {
		case 0:
			make_file(name, "");
			break;
		case 1:
			NEED(mkdir(name, 0755));
			break;
		case 2:
			gather(start(make_by_child, name));
			break;
		case 3:
			make_file("other", "");
			NEED(rename("other", name));
			break;
		default:
			make_file("other", "");
			NEED(link("other", name));
			NEED(unlink("other"));
		}
		OK(stat(name, &st));
		IS(S_ISDIR(st.st_mode), i % 5 == 1);
		if (i % 5 == 2)
			gather(start(remove_by_child, name));
		else
			OK(i % 5 == 1 ? rmdir(name) : unlink(name));
	}
}

CASE(names, a_path_through_a_removed_directory_is_gone)
{
	struct stat st;
	int fd;

	NEED(mkdir("a", 0755));
	NEED(mkdir("a/b", 0755));
	make_file("a/b/f", "x");
	OK(stat("a/b/f", &st));
	OK(rename("a", "c"));
	FAILS(stat("a/b/f", &st), ENOENT);
	OK(stat("c/b/f", &st));
	fd = (int)NEED(open("c/b", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	remove_all("c");
	FAILS(stat("c/b/f", &st), ENOENT);
	FAILS(fstatat(fd, "f", &st, 0), ENOENT);
	FAILS(openat(fd, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), ENOENT);
	FAILS(mkdirat(fd, "new", 0755), ENOENT);
	FAILS(symlinkat("x", fd, "new"), ENOENT);
	IS(stat_fd(fd).st_nlink, 0);
	close(fd);
	NEED(mkdir("c", 0755));
	FAILS(stat("c/b", &st), ENOENT);
}

CASE(names, readlink_gives_the_target_and_no_more)
{
	char target[PATH_MAX + 8], longest[PATH_MAX];
	ssize_t n;

	NEED(symlink("0123456789", "ten"));
	memset(target, 'z', sizeof(target));
	IS(readlink("ten", target, sizeof(target)), 10);
	IS(target[10], 'z');
	IS(readlink("ten", target, 4), 4);
	FAILS(readlink("ten", target, 0), EINVAL);
	make_file("file", "");
	FAILS(readlink("file", target, sizeof(target)), EINVAL);
	NEED(mkdir("dir", 0755));
	FAILS(readlink("dir", target, sizeof(target)), EINVAL);

	memset(longest, 't', sizeof(longest) - 1);
	longest[PATH_MAX - 1] = '\0';
	OK(symlink(longest, "longest"));
	n = readlink("longest", target, sizeof(target));
	IS(n, PATH_MAX - 1);
	IS(n == PATH_MAX - 1 ? memcmp(target, longest, (size_t)n) : 1, 0);
	IS(size_of("longest"), PATH_MAX - 1);
	FAILS(symlink("", "empty"), ENOENT);
}

static void chain(unsigned links)
{
	char name[32], to[32];
	unsigned i;

	make_file("end", "end\n");
	for (i = 0; i < links; i++) {
		snprintf(name, sizeof(name), "chain-%u", i);
		snprintf(to, sizeof(to), "chain-%u", i + 1);
		NEED(symlink(i + 1 == links ? "end" : to, name));
	}
}

CASE(names, forty_symlinks_are_followed_and_no_more)
{
	chain(41);
	CONTENT_IS("chain-1", "end\n");
	FAILS(open("chain-0", O_RDONLY | O_CLOEXEC), ELOOP);
}
