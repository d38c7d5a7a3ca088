/*
 * Hard links, symlinks and link counts, of files and of directories.
 */
#include "tests/posix/posix.h"

CASE(links, a_file_counts_its_names)
{
	make_file("a", "x");
	IS(nlink_of("a"), 1);
	NEED(mkdir("d", 0755));
	OK(link("a", "b"));
	OK(link("b", "d/c"));
	IS(nlink_of("a"), 3);
	IS(nlink_of("d/c"), 3);
	IS(ino_of("a"), ino_of("d/c"));
	OK(unlink("a"));
	IS(nlink_of("b"), 2);
	OK(rename("b", "d/b"));
	IS(nlink_of("d/b"), 2);
	OK(unlink("d/c"));
	IS(nlink_of("d/b"), 1);
	CONTENT_IS("d/b", "x");
}

CASE(links, every_name_shows_the_same_file)
{
	int fd;

	make_file("a", "one");
	OK(link("a", "b"));
	fd = (int)NEED(open("a", O_WRONLY | O_APPEND | O_CLOEXEC));
	OK(write(fd, " two", 4));
	CONTENT_IS("b", "one two");
	OK(chmod("b", 0600));
	IS(stat_of("a").st_mode & 07777, 0600);
	OK(truncate("b", 3));
	OK(unlink("b"));
	OK(write(fd, "!", 1));
	CONTENT_IS("a", "one!");
	close(fd);
	OK(utimensat(AT_FDCWD, "a", (struct timespec[]){ { 5, 6 }, { 7, 8 } }, 0));
	OK(link("a", "c"));
	IS(stat_of("c").st_mtim.tv_sec, 7);
	IS(stat_of("c").st_mtim.tv_nsec, 8);
}

CASE(links, every_kind_but_directories_can_be_linked)
{
	enum kind k;

	for (k = 0; k < KINDS; k++) {
		char path[32], other[32];

		trying("%s", kind_name(k));
		snprintf(path, sizeof(path), "from-%d", (int)k);
		snprintf(other, sizeof(other), "to-%d", (int)k);
		make(k, path);
		if (kind_is_dir(k)) {
			FAILS(link(path, other), EPERM);
			continue;
		}
		OK(link(path, other));
		IS(ino_of(other), ino_of(path));
		IS(nlink_of(path), 2);
		IS(stat_of(path).st_mode, stat_of(other).st_mode);
		OK(unlink(path));
		IS(nlink_of(other), 1);
	}
}

CASE(links, linkat_follows_a_symlink_only_when_told)
{
	int fd;

	make(LINK_FILE, "s");
	OK(linkat(AT_FDCWD, "s", AT_FDCWD, "of-link", 0));
	TRUE(S_ISLNK(stat_of("of-link").st_mode));
	OK(linkat(AT_FDCWD, "s", AT_FDCWD, "of-file", AT_SYMLINK_FOLLOW));
	IS(ino_of("of-file"), ino_of("s.to"));
	FAILS(linkat(AT_FDCWD, "s", AT_FDCWD, "x", 0x4000000), EINVAL);
	NEED(symlink("none", "dangling"));
	FAILS(linkat(AT_FDCWD, "dangling", AT_FDCWD, "x", AT_SYMLINK_FOLLOW), ENOENT);
	fd = (int)NEED(open("of-file", O_RDONLY | O_CLOEXEC));
	if (geteuid() == 0)
		OK(linkat(fd, "", AT_FDCWD, "by-fd", AT_EMPTY_PATH));
	close(fd);
}

CASE(links, a_file_without_names_cannot_get_one_back)
{
	char proc[64];
	int fd = open_new("a");

	OK(unlink("a"));
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	FAILS(linkat(AT_FDCWD, proc, AT_FDCWD, "b", AT_SYMLINK_FOLLOW), ENOENT);
	IS(exists("b"), false);
	close(fd);
}

CASE(links, directories_count_their_subdirectories)
{
	char name[32];
	unsigned i;

	NEED(mkdir("d", 0755));
	IS(nlink_of("d"), 2);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "d/%u", i);
		NEED(mkdir(name, 0755));
	}
	IS(nlink_of("d"), 202);
	make_file("d/file", "");
	NEED(symlink("0", "d/link"));
	IS(nlink_of("d"), 202);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "d/%u", i);
		NEED(rmdir(name));
	}
	IS(nlink_of("d"), 102);
	NEED(mkdir("e", 0755));
	OK(rename("d/100", "e/100"));
	IS(nlink_of("d"), 101);
	IS(nlink_of("e"), 3);
	OK(rename("e/100", "d/101"));
	IS(nlink_of("d"), 101);
	IS(nlink_of("e"), 2);
	FAILS(mkdir("d/101", 0755), EEXIST);
	IS(nlink_of("d"), 101);
	IS(ino_of("d/101/.."), ino_of("d"));
	IS(ino_of("d/101/."), ino_of("d/101"));
}

CASE(links, a_symlink_is_what_it_was_made_with)
{
	static const char *const targets[] = {
		"plain", "/absolute/path", "../../up", "a//b/./c/", "\xff\xfe\x01", " ", ".", "..",
		"/",
	};
	char have[256];
	struct stat st;
	ssize_t n;
	size_t i;

	umask(0077);
	for (i = 0; i < ARRAY_LEN(targets); i++) {
		trying("%s", targets[i]);
		OK(symlink(targets[i], "s"));
		n = readlink("s", have, sizeof(have));
		IS(n, strlen(targets[i]));
		IS(n > 0 ? memcmp(have, targets[i], (size_t)n) : 1, 0);
		st = stat_of("s");
		TRUE(S_ISLNK(st.st_mode));
		IS(st.st_mode & 0777, 0777);
		IS(st.st_size, strlen(targets[i]));
		IS(st.st_nlink, 1);
		IS(st.st_uid, geteuid());
		OK(unlink("s"));
	}
}

CASE(links, a_symlink_has_times_and_an_owner_of_its_own)
{
	struct timespec t[2] = { { 11, 12 }, { 13, 14 } };
	struct stamp target;
	struct stat st;

	make(LINK_FILE, "s");
	target = stamp_of("s.to");
	tick();
	OK(utimensat(AT_FDCWD, "s", t, AT_SYMLINK_NOFOLLOW));
	st = stat_of("s");
	IS(st.st_mtim.tv_sec, 13);
	IS(st.st_mtim.tv_nsec, 14);
	IS(st.st_atim.tv_nsec, 12);
	OK(lchown("s", geteuid(), getegid()));
	MOVED("s.to", target, MOVES_NOTHING);
	if (geteuid() == 0) {
		OK(lchown("s", OTHER, OTHER));
		IS(stat_of("s").st_uid, OTHER);
		IS(stat_of("s.to").st_uid, 0);
		OK(chown("s", OTHER2, OTHER2));
		IS(stat_of("s").st_uid, OTHER);
		IS(stat_of("s.to").st_uid, OTHER2);
	}
	OK(chmod("s", 0600));
	IS(stat_of("s.to").st_mode & 07777, 0600);
	OK(unlink("s"));
	TRUE(exists("s.to"));
}

CASE(links, inode_numbers_are_unique_and_stay)
{
	enum { N = 500 };
	static ino_t inos[N];
	char name[32];
	unsigned i, k;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i);
		make_file(name, "");
		inos[i] = ino_of(name);
		TRUE(inos[i] != 0);
	}
	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (!IS(ino_of(name), inos[i]))
			break;
		for (k = 0; k < i; k++)
			if (SAY_IF(inos[k] == inos[i], "%u and %u have one inode number", i, k))
				return;
	}
	make_file("0", "longer than it was");
	IS(ino_of("0"), inos[0]);
	NEED(mkdir("d", 0755));
	OK(rename("0", "d/0"));
	IS(ino_of("d/0"), inos[0]);
}
