/*
 * Much of everything.  Times are printed and decide nothing.
 */
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "tests/posix/posix.h"

CASE(limits, a_tree_of_a_thousand_levels)
{
	enum { LEVELS = 1000 };
	double t = now_s();
	int top = (int)NEED(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), i;
	struct stat st;

	for (i = 0; i < LEVELS; i++) {
		NEED(mkdir("level", 0755));
		NEED(chdir("level"));
	}
	make_file("bottom", "deep");
	for (i = 0; i < LEVELS; i++)
		NEED(chdir(".."));
	NEED(fstat(top, &st));
	IS(ino_of("."), st.st_ino);
	OK(rename("level", "moved"));
	NEED(chdir("moved"));
	for (i = 1; i < LEVELS; i++)
		NEED(chdir("level"));
	CONTENT_IS("bottom", "deep");
	FAILS(renameat(top, "moved", AT_FDCWD, "inside"), EINVAL);
	OK(unlink("bottom"));
	for (i = 1; i < LEVELS; i++) {
		NEED(chdir(".."));
		NEED(rmdir("level"));
	}
	NEED(fchdir(top));
	OK(rmdir("moved"));
	close(top);
	note("1,000 levels in %.2f s", now_s() - t);
}

CASE(limits, ten_thousand_names_of_one_file)
{
	enum { N = 10000 };
	double t = now_s();
	char name[64];
	unsigned i;

	make_file("file", "one");
	NEED(mkdir("a", 0755));
	NEED(mkdir("b", 0755));
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%c/%u", i % 2 ? 'a' : 'b', i);
		NEED(link("file", name));
	}
	IS(nlink_of("file"), N + 1);
	CONTENT_IS("a/9999", "one");
	make_file("file", "two");
	CONTENT_IS("b/0", "two");
	OK(chmod("b/5000", 0600));
	IS(stat_of("a/1").st_mode & 07777, 0600);
	for (i = 0; i < N; i += 2) {
		snprintf(name, sizeof(name), "b/%u", i);
		NEED(unlink(name));
	}
	IS(nlink_of("a/1"), N / 2 + 1);
	remove_all("a");
	IS(nlink_of("file"), 1);
	OK(rmdir("b"));
	note("10,000 links in %.2f s", now_s() - t);
}

CASE(limits, a_directory_of_a_hundred_thousand)
{
	enum { N = 100000 };
	double t = now_s(), made, listed, found;
	struct dirent *e;
	char name[64];
	unsigned i, n = 0;
	struct stat st;
	DIR *d;

	NEED(mkdir("d", 0755));
	NEED(chdir("d"));
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "entry-%u", i);
		close((int)NEED(open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)));
	}
	made = now_s();
	d = opendir(".");
	NEED(d ? 0 : -1);
	while ((e = readdir(d)))
		n++;
	closedir(d);
	IS(n, N + 2);
	listed = now_s();
	for (i = 0; i < N; i += 97) {
		snprintf(name, sizeof(name), "entry-%u", i);
		NEED(lstat(name, &st));
	}
	FAILS(lstat("entry-100000", &st), ENOENT);
	found = now_s();
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "entry-%u", i);
		NEED(unlink(name));
	}
	NEED(chdir(".."));
	OK(rmdir("d"));
	note(
	    "100,000 entries: made in %.2f s, listed in %.2f s, 1,031 looked up in %.3f s, removed in %.2f s",
	    made - t, listed - made, found - listed, now_s() - found);
}

CASE(limits, two_thousand_subdirectories)
{
	char name[64];
	unsigned i;

	NEED(mkdir("d", 0755));
	for (i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "d/%u", i);
		NEED(mkdir(name, 0755));
		snprintf(name, sizeof(name), "d/%u/f", i);
		make_file(name, "");
	}
	IS(nlink_of("d"), 2002);
	remove_all("d");
}

CASE(limits, a_thousand_files_open_at_once)
{
	enum { N = 1000 };
	static int fds[N];
	char name[32];
	unsigned i;

	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ N + 50, N + 50 }) != 0)
		skip("no %d descriptors allowed", N + 50);
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i);
		fds[i] = open_new(name);
		write_pattern(fds[i], i, 100, i);
	}
	for (i = 0; i < N; i++)
		if (!PATTERN_AT(fds[i], i, 100, i))
			break;
	for (i = 0; i < N; i++)
		close(fds[i]);
}

CASE(limits, statfs_says_what_is_there)
{
	struct statvfs v;

	NEED(statvfs(".", &v));
	IS(v.f_namemax, 255);
	TRUE(v.f_bsize >= 512);
	TRUE(v.f_frsize >= 512);
	TRUE(v.f_blocks > 0);
	TRUE(v.f_bfree <= v.f_blocks);
	TRUE(v.f_bavail <= v.f_bfree || geteuid() != 0);
	TRUE(v.f_bavail > 0);
	TRUE(v.f_ffree <= v.f_files);
	IS(pathconf(".", _PC_NAME_MAX), 255);
	TRUE(stat_of(".").st_blksize >= 512);
}

CASE(limits, a_path_can_be_longer_than_path_max_in_steps)
{
	int i, top = (int)NEED(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	char cwd[PATH_MAX];

	for (i = 0; i < 30; i++) {
		NEED(mkdir(name_of(250, 7), 0755));
		NEED(chdir(name_of(250, 7)));
	}
	IS(getcwd(cwd, sizeof(cwd)) != NULL, false);
	IS(errno, ERANGE);
	make_file("f", "far");
	CONTENT_IS("f", "far");
	OK(unlink("f"));
	for (i = 0; i < 30; i++) {
		NEED(chdir(".."));
		NEED(rmdir(name_of(250, 7)));
	}
	NEED(fchdir(top));
	close(top);
}
