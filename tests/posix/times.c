/*
 * Times: who moves which, and to what.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/xattr.h>

#include "tests/posix/posix.h"

CASE(times, making_stamps_the_new_and_its_directory)
{
	enum kind k;

	for (k = 0; k < KINDS; k++) {
		struct stamp dir, born;
		char path[32];

		snprintf(path, sizeof(path), "d%d", (int)k);
		NEED(mkdir(path, 0755));
		dir = stamp_of(path);
		snprintf(path, sizeof(path), "d%d/new", (int)k);
		tick();
		make(k, path);
		born = stamp_of(path);
		snprintf(path, sizeof(path), "d%d", (int)k);
		trying("making a %s", kind_name(k));
		MOVED(path, dir, MOVES_MC);
		TRUE(time_cmp(born.m, dir.m) > 0);
		TRUE(time_cmp(born.c, dir.c) > 0);
		TRUE(time_cmp(born.a, dir.m) > 0);
		trying("%s", "");
	}
}

CASE(times, removing_stamps_the_directory_and_what_has_other_names)
{
	struct stamp dir, file;

	NEED(mkdir("d", 0755));
	NEED(mkdir("d/sub", 0755));
	make_file("d/f", "");
	NEED(link("d/f", "kept"));
	dir = stamp_of("d"), file = stamp_of("kept");
	tick();
	OK(unlink("d/f"));
	MOVED("d", dir, MOVES_MC);
	MOVED("kept", file, MOVES_C);
	dir = stamp_of("d");
	tick();
	OK(rmdir("d/sub"));
	MOVED("d", dir, MOVES_MC);
	file = stamp_of("kept"), dir = stamp_of("d");
	tick();
	OK(link("kept", "d/again"));
	MOVED("kept", file, MOVES_C);
	MOVED("d", dir, MOVES_MC);
}

CASE(times, what_fails_stamps_nothing)
{
	struct stamp dir, file;

	NEED(mkdir("d", 0755));
	make(FULL_DIR, "d/full");
	make_file("d/f", "");
	dir = stamp_of("d"), file = stamp_of("d/f");
	tick();
	FAILS(mkdir("d/f", 0755), EEXIST);
	FAILS(open("d/f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), EEXIST);
	FAILS(unlink("d/none"), ENOENT);
	FAILS(rmdir("d/full"), ENOTEMPTY);
	FAILS(link("d/f", "d/full"), EEXIST);
	FAILS(symlink("x", "d/f"), EEXIST);
	FAILS(truncate("d/f", -1), EINVAL);
	FAILS(getxattr("d/f", "user.none", NULL, 0), ENODATA, EOPNOTSUPP);
	MOVED("d", dir, MOVES_NOTHING);
	MOVED("d/f", file, MOVES_NOTHING);
}

CASE(times, writing_stamps_the_file_and_not_its_directory)
{
	struct stamp dir, file;
	int fd;

	NEED(mkdir("d", 0755));
	fd = open_new("d/f");
	OK(write(fd, "x", 1));
	dir = stamp_of("d"), file = stamp_of("d/f");
	tick();
	OK(write(fd, "x", 1));
	MOVED("d/f", file, MOVES_MC);
	MOVED("d", dir, MOVES_NOTHING);
	file = stamp_of("d/f");
	tick();
	OK(pread(fd, (char[2]){ 0 }, 2, 0));
	OK(fsync(fd));
	OK(lseek(fd, 0, SEEK_SET));
	close(fd);
	MOVED("d/f", file, MOVES_NOTHING);
}

CASE(times, truncating_stamps_the_file)
{
	struct stamp was;
	int fd = open_new("f");

	write_pattern(fd, 0, 10000, 1);
	was = stamp_of("f");
	tick();
	OK(ftruncate(fd, 5000));
	MOVED("f", was, MOVES_MC);
	was = stamp_of("f");
	tick();
	OK(truncate("f", 20000));
	MOVED("f", was, MOVES_MC);
	was = stamp_of("f");
	tick();
	close((int)NEED(open("f", O_WRONLY | O_TRUNC | O_CLOEXEC)));
	MOVED("f", was, MOVES_MC);
	was = stamp_of("f");
	tick();
	close((int)NEED(open("f", O_WRONLY | O_TRUNC | O_CLOEXEC)));
	MOVED("f", was, MOVES_MC); /* O_TRUNC stamps an empty file too */
	was = stamp_of("f");
	tick();
	close((int)NEED(open("f", O_WRONLY | O_CLOEXEC)));
	close((int)NEED(open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
	MOVED("f", was, MOVES_NOTHING);
	close(fd);
}

CASE(times, attributes_stamp_the_ctime_only)
{
	struct stamp was;

	make_file("f", "x");
	was = stamp_of("f");
	tick();
	OK(chmod("f", 0600));
	MOVED("f", was, MOVES_C);
	was = stamp_of("f");
	tick();
	OK(chmod("f", 0600));
	MOVED("f", was, MOVES_C); /* also if nothing is changed by it */
	was = stamp_of("f");
	tick();
	OK(chown("f", geteuid(), getegid()));
	MOVED("f", was, MOVES_C);
	was = stamp_of("f");
	tick();
	if (setxattr("f", "user.a", "v", 1, 0) == 0) {
		MOVED("f", was, MOVES_C);
		was = stamp_of("f");
		tick();
		OK(removexattr("f", "user.a"));
		MOVED("f", was, MOVES_C);
	} else {
		SAY_IF(errno != EOPNOTSUPP, "setxattr failed with %s", strerrorname_np(errno));
	}
	NEED(mkdir("d", 0755));
	was = stamp_of("d");
	tick();
	OK(chmod("d", 0700));
	MOVED("d", was, MOVES_C);
}

CASE(times, they_can_be_set_to_the_nanosecond)
{
	static const struct timespec some[] = {
		{ 0, 0 },
		{ 0, 1 },
		{ 1, 999999999 },
		{ 1234567890, 123456789 },
		{ 2147483647, 999999999 },
		{ 2147483648, 1 },
		{ 4102444800, 987654321 },
		{ -1, 500000000 },
		{ -86400, 1 },
	};
	static const char *const paths[] = { "f", "d", "s" };
	struct timespec t[2];
	struct stamp was;
	struct stat st;
	size_t i, k;

	make(FILE_, "f");
	make(DIR_, "d");
	make(LINK_NONE, "s");
	for (k = 0; k < ARRAY_LEN(paths); k++)
		for (i = 0; i < ARRAY_LEN(some); i++) {
			t[0] = some[ARRAY_LEN(some) - 1 - i];
			t[1] = some[i];
			was = stamp_of(paths[k]);
			tick();
			trying("%s to %jd.%09ld", paths[k], (intmax_t)t[1].tv_sec, t[1].tv_nsec);
			OK(utimensat(AT_FDCWD, paths[k], t, AT_SYMLINK_NOFOLLOW));
			NEED(lstat(paths[k], &st));
			IS(st.st_mtim.tv_sec, t[1].tv_sec);
			IS(st.st_mtim.tv_nsec, t[1].tv_nsec);
			IS(st.st_atim.tv_sec, t[0].tv_sec);
			IS(st.st_atim.tv_nsec, t[0].tv_nsec);
			IS(time_cmp(st.st_ctim, was.c), 1);
		}
}

CASE(times, omit_and_now_mean_what_they_say)
{
	struct timespec omit = { 0, UTIME_OMIT }, now = { 0, UTIME_NOW }, t = { 77, 78 };
	struct stamp was, is;
	int fd;

	make_file("f", "");
	OK(utimensat(AT_FDCWD, "f", (struct timespec[]){ { 5, 6 }, { 7, 8 } }, 0));
	was = stamp_of("f");
	tick();
	OK(utimensat(AT_FDCWD, "f", (struct timespec[]){ omit, omit }, 0));
	MOVED("f", was, MOVES_NOTHING);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[]){ t, omit }, 0));
	is = stamp_of("f");
	IS(is.a.tv_sec, 77);
	IS(time_cmp(is.m, was.m), 0);
	IS(time_cmp(is.c, was.c), 1);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[]){ omit, t }, 0));
	is = stamp_of("f");
	IS(is.a.tv_sec, 77);
	IS(is.m.tv_nsec, 78);
	OK(utimensat(AT_FDCWD, "f", (struct timespec[]){ t, now }, 0));
	is = stamp_of("f");
	IS(is.a.tv_sec, 77);
	TRUE(is.m.tv_sec > 1600000000);
	OK(utimensat(AT_FDCWD, "f", NULL, 0));
	is = stamp_of("f");
	IS(time_cmp(is.a, is.m), 0);
	TRUE(is.a.tv_sec > 1600000000);
	FAILS(utimensat(AT_FDCWD, "f", (struct timespec[]){ { 0, 1000000000 }, { 0, 0 } }, 0),
	      EINVAL);
	FAILS(utimensat(AT_FDCWD, "f", (struct timespec[]){ { 0, 0 }, { 0, -5 } }, 0), EINVAL);
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	OK(futimens(fd, (struct timespec[]){ { 1, 2 }, { 3, 4 } }));
	IS(stamp_of("f").m.tv_nsec, 4);
	close(fd);
}

CASE(times, set_times_stay_until_something_changes)
{
	struct timespec t[2] = { { 1000, 1 }, { 2000, 2 } };
	struct stamp was;
	int fd;

	make_file("f", "content");
	NEED(mkdir("d", 0755));
	OK(utimensat(AT_FDCWD, "f", t, 0));
	OK(utimensat(AT_FDCWD, "d", t, 0));
	was = stamp_of("f");
	tick();
	fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
	OK(write(fd, "C", 1));
	OK(futimens(fd, t));
	close(fd);
	IS(stamp_of("f").m.tv_sec, 2000);
	IS(stamp_of("f").m.tv_nsec, 2);
	OK(rename("f", "d/f"));
	IS(stamp_of("d/f").m.tv_sec, 2000);
	TRUE(stamp_of("d").m.tv_sec > 2000);
	OK(link("d/f", "g"));
	OK(unlink("d/f"));
	IS(stamp_of("g").m.tv_sec, 2000);
	TRUE(time_cmp(stamp_of("g").c, was.c) > 0);
}

CASE(times, writing_through_a_mapping_stamps_the_file)
{
	struct stamp was;
	char *map;
	int fd = open_new("f");

	write_pattern(fd, 0, 4096, 1);
	was = stamp_of("f");
	tick();
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map == MAP_FAILED ? -1 : 0);
	map[10] = 'x';
	OK(msync(map, 4096, MS_SYNC));
	munmap(map, 4096);
	close(fd);
	MOVED("f", was, MOVES_MC);
}

CASE(times, fallocate_stamps_the_file)
{
	struct stamp was;
	int fd = open_new("f");

	write_pattern(fd, 0, 200000, 1);
	was = stamp_of("f");
	tick();
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536, 65536) != 0 &&
	    errno == EOPNOTSUPP)
		skip("no fallocate on this file system");
	MOVED("f", was, MOVES_MC);
	was = stamp_of("f");
	tick();
	OK(fallocate(fd, 0, 0, 300000));
	TRUE(time_cmp(stamp_of("f").c, was.c) > 0);
	close(fd);
}

CASE(times, creating_later_never_looks_earlier)
{
	char name[32];
	struct stamp last = stamp_of(".");
	unsigned i;

	for (i = 0; i < 200; i++) {
		struct stamp s;

		snprintf(name, sizeof(name), "%u", i);
		make_file(name, "");
		s = stamp_of(name);
		if (SAY_IF(time_cmp(s.m, last.m) < 0, "file %u is older than the one before", i))
			return;
		last = s;
	}
}

CASE(times, statx_agrees_with_stat)
{
	struct statx x;
	struct stat st;

	make_file("f", "12345");
	OK(utimensat(AT_FDCWD, "f", (struct timespec[]){ { 5, 6 }, { 7, 8 } }, 0));
	st = stat_of("f");
	NEED(statx(AT_FDCWD, "f", 0, STATX_ALL, &x));
	IS(x.stx_size, st.st_size);
	IS(x.stx_mode, st.st_mode);
	IS(x.stx_ino, st.st_ino);
	IS(x.stx_nlink, st.st_nlink);
	IS(x.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
	IS(x.stx_ctime.tv_nsec, st.st_ctim.tv_nsec);
	IS(x.stx_blocks, st.st_blocks);
	NEED(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x));
	IS(x.stx_mtime.tv_sec, 7);
}
