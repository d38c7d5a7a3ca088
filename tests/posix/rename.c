/*
 * rename(2) and renameat2(2): every kind onto every kind, with every flag, within a
 * directory and between two.
 */
#include <sys/wait.h>

#include "tests/posix/posix.h"

static int rename_flags(const char *from, const char *to, unsigned flags)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* What rename(2) of a `from` onto a `to` must answer; KINDS: there is nothing. */
static int expected(enum kind from, enum kind to)
{
	if (to == KINDS)
		return 0;
	if (kind_is_dir(from) && !kind_is_dir(to))
		return ENOTDIR;
	if (!kind_is_dir(from) && kind_is_dir(to))
		return EISDIR;
	return to == FULL_DIR ? ENOTEMPTY : 0;
}

static void arena(void)
{
	remove_all("x");
	remove_all("y");
	NEED(mkdir("x", 0755));
	NEED(mkdir("y", 0755));
}

/* Names and link counts of x and y, after a rename that may have done nothing. */
static void count_dirs(unsigned want_x, unsigned want_y)
{
	IS(nlink_of("x"), 2 + want_x);
	IS(nlink_of("y"), 2 + want_y);
}

static void one_plain(enum kind from, enum kind to, const char *target)
{
	bool across = target[0] == 'y';
	int want = expected(from, to);
	unsigned dirs_x, dirs_y;
	ino_t source, victim = 0;

	arena();
	make(from, "x/from");
	source = ino_of("x/from");
	if (to != KINDS) {
		make(to, target);
		victim = ino_of(target);
	}
	trying("%s onto %s%s", kind_name(from), to == KINDS ? "nothing" : kind_name(to),
	       across ? ", in another directory" : "");
	dirs_x = kind_is_dir(from) + (from == LINK_DIR) +
		 (to != KINDS && !across ? kind_is_dir(to) + (to == LINK_DIR) : 0);
	dirs_y = to != KINDS && across ? kind_is_dir(to) + (to == LINK_DIR) : 0;
	if (want) {
		FAILS(rename("x/from", target), want, want == ENOTEMPTY ? EEXIST : want);
		IS(ino_of("x/from"), source);
		IS(ino_of(target), victim);
	} else {
		OK(rename("x/from", target));
		IS(exists("x/from"), false);
		IS(ino_of(target), source);
		if (kind_is_dir(from) && to != KINDS) {
			dirs_x -= 1;
		} else if (kind_is_dir(from) && across) {
			dirs_x -= 1;
			dirs_y += 1;
		}
	}
	count_dirs(dirs_x, dirs_y);
	trying("%s", "");
}

CASE(rename, every_kind_onto_every_kind)
{
	int from, to;

	for (from = 0; from < KINDS; from++)
		for (to = 0; to <= KINDS; to++) {
			one_plain((enum kind)from, (enum kind)to, "x/to");
			one_plain((enum kind)from, (enum kind)to, "y/to");
		}
}

CASE(rename, noreplace_replaces_nothing)
{
	int from, to;
	ino_t source;

	for (from = 0; from < KINDS; from++)
		for (to = 0; to <= KINDS; to++) {
			arena();
			make((enum kind)from, "x/from");
			source = ino_of("x/from");
			trying("%s, %s is there", kind_name((enum kind)from),
			       to == KINDS ? "nothing" : kind_name((enum kind)to));
			if (to == KINDS) {
				OK(rename_flags("x/from", "y/to", RENAME_NOREPLACE));
				IS(ino_of("y/to"), source);
				IS(exists("x/from"), false);
			} else {
				make((enum kind)to, "y/to");
				FAILS(rename_flags("x/from", "y/to", RENAME_NOREPLACE), EEXIST);
				IS(ino_of("x/from"), source);
			}
		}
}

CASE(rename, exchange_swaps_any_two)
{
	int from, to;
	ino_t a, b;

	for (from = 0; from < KINDS; from++)
		for (to = 0; to < KINDS; to++) {
			unsigned in_x = from == LINK_DIR, in_y = to == LINK_DIR;

			arena();
			make((enum kind)from, "x/from");
			make((enum kind)to, "y/to");
			a = ino_of("x/from");
			b = ino_of("y/to");
			trying("%s with %s", kind_name((enum kind)from), kind_name((enum kind)to));
			OK(rename_flags("x/from", "y/to", RENAME_EXCHANGE));
			IS(ino_of("x/from"), b);
			IS(ino_of("y/to"), a);
			count_dirs(in_x + kind_is_dir((enum kind)to),
				   in_y + kind_is_dir((enum kind)from));
			if (kind_is_dir((enum kind)from))
				IS(ino_of("y/to/.."), ino_of("y"));
			if (kind_is_dir((enum kind)to))
				IS(ino_of("x/from/.."), ino_of("x"));
		}
	arena();
	make_file("x/from", "");
	FAILS(rename_flags("x/from", "y/none", RENAME_EXCHANGE), ENOENT);
	FAILS(rename_flags("y/none", "x/from", RENAME_EXCHANGE), ENOENT);
	OK(rename_flags("x/from", "x/from", RENAME_EXCHANGE));
}

CASE(rename, flags_that_contradict_are_refused)
{
	make_file("a", "");
	make_file("b", "");
	FAILS(rename_flags("a", "b", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
	FAILS(rename_flags("a", "b", 0x80), EINVAL);
	FAILS(rename_flags("a", "b", RENAME_WHITEOUT | RENAME_EXCHANGE), EINVAL);
}

CASE(rename, whiteout_leaves_a_device_behind)
{
	struct stat st;

	need_root();
	make_file("a", "a");
	make_file("b", "b");
	if (rename_flags("a", "b", RENAME_WHITEOUT) != 0 && (errno == EINVAL || errno == EPERM))
		skip("RENAME_WHITEOUT is for file systems that overlayfs writes to");
	CONTENT_IS("b", "a");
	st = stat_of("a");
	TRUE(S_ISCHR(st.st_mode));
	IS(st.st_rdev, 0);
	OK(unlink("a"));
}

CASE(rename, a_directory_does_not_go_into_itself)
{
	NEED(mkdir("a", 0755));
	NEED(mkdir("a/b", 0755));
	NEED(mkdir("a/b/c", 0755));
	make_file("f", "");
	FAILS(rename("a", "a/new"), EINVAL);
	FAILS(rename("a", "a/b/new"), EINVAL);
	FAILS(rename("a", "a/b/c"), EINVAL);
	FAILS(rename("a/b", "a/b/c/d"), EINVAL);
	FAILS(rename("a/b", "a"), ENOTEMPTY);
	FAILS(rename("a/b/c", "a"), ENOTEMPTY);
	FAILS(rename_flags("a", "a/b/c", RENAME_EXCHANGE), EINVAL);
	FAILS(rename_flags("a/b/c", "a", RENAME_EXCHANGE), EINVAL);
	FAILS(rename("f", "f/x"), ENOTDIR);
	FAILS(rename("a", "f/x"), ENOTDIR);
	FAILS(rename("f", "a"), EISDIR);
	FAILS(rename(".", "dot"), EBUSY, EINVAL);
	FAILS(rename("..", "dot"), EBUSY, EINVAL);
	FAILS(rename("a/.", "dot"), EBUSY, EINVAL);
	FAILS(rename("a/..", "dot"), EBUSY, EINVAL);
	FAILS(rename("f", "."), EBUSY, EISDIR, EEXIST);
	FAILS(rename("a/b", "a/b/.."), EBUSY, ENOTEMPTY, EINVAL);
	IS(nlink_of("a"), 3);
	IS(nlink_of("a/b"), 3);
	OK(rename("a", "a"));
	OK(rename("a/b", "./a/../a/b"));
}

CASE(rename, two_names_of_one_file_both_stay)
{
	struct stamp was;

	make_file("a", "x");
	NEED(mkdir("d", 0755));
	NEED(link("a", "b"));
	NEED(link("a", "d/c"));
	was = stamp_of(".");
	tick();
	OK(rename("a", "b"));
	OK(rename("a", "d/c"));
	OK(rename("a", "a"));
	IS(nlink_of("a"), 3);
	TRUE(exists("b"));
	TRUE(exists("d/c"));
	MOVED(".", was, MOVES_NOTHING);
	FAILS(rename_flags("a", "b", RENAME_NOREPLACE), EEXIST);
}

CASE(rename, the_replaced_file_loses_a_link)
{
	struct stamp was;
	int fd;

	make_file("a", "new");
	make_file("b", "old");
	NEED(link("b", "other"));
	fd = (int)NEED(open("b", O_RDWR | O_CLOEXEC));
	was = stamp_of("other");
	tick();
	OK(rename("a", "b"));
	IS(nlink_of("other"), 1);
	IS(stat_fd(fd).st_nlink, 1);
	MOVED("other", was, MOVES_C);
	CONTENT_IS("other", "old");
	CONTENT_IS("b", "new");
	make_file("a", "newer");
	OK(rename("a", "other"));
	IS(stat_fd(fd).st_nlink, 0);
	IS(pread(fd, (char[8]){ 0 }, 8, 0), 3);
	close(fd);
}

CASE(rename, the_replaced_directory_is_dead_for_who_has_it_open)
{
	struct stat st;
	int fd;

	NEED(mkdir("a", 0755));
	make_file("a/f", "");
	NEED(mkdir("b", 0755));
	fd = (int)NEED(open("b", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	OK(rename("a", "b"));
	IS(stat_fd(fd).st_nlink, 0);
	FAILS(openat(fd, "f", O_RDONLY | O_CLOEXEC), ENOENT);
	FAILS(openat(fd, "n", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), ENOENT);
	OK(stat("b/f", &st));
	close(fd);
}

CASE(rename, times_of_all_concerned_move)
{
	struct stamp x, y, f, d;

	NEED(mkdir("x", 0755));
	NEED(mkdir("y", 0755));
	NEED(mkdir("x/d", 0755));
	make_file("x/f", "");
	x = stamp_of("x"), y = stamp_of("y"), f = stamp_of("x/f"), d = stamp_of("x/d");
	tick();
	OK(rename("x/f", "x/g"));
	MOVED("x", x, MOVES_MC);
	MOVED("y", y, MOVES_NOTHING);
	MOVED("x/g", f, MOVES_C);
	x = stamp_of("x"), f = stamp_of("x/g");
	tick();
	OK(rename("x/g", "y/g"));
	MOVED("x", x, MOVES_MC);
	MOVED("y", y, MOVES_MC);
	MOVED("y/g", f, MOVES_C);
	x = stamp_of("x"), y = stamp_of("y");
	tick();
	OK(rename("x/d", "y/d"));
	MOVED("x", x, MOVES_MC);
	MOVED("y", y, MOVES_MC);
	IS(time_cmp(stamp_of("y/d").c, d.c) > 0, 1);
	x = stamp_of("x"), y = stamp_of("y");
	tick();
	FAILS(rename("x/none", "y/none"), ENOENT);
	FAILS(rename("y/g", "y/d"), EISDIR);
	MOVED("x", x, MOVES_NOTHING);
	MOVED("y", y, MOVES_NOTHING);
	NEED(mkdir("x/e", 0755));
	x = stamp_of("x"), y = stamp_of("y");
	tick();
	OK(rename_flags("x/e", "y/g", RENAME_EXCHANGE));
	MOVED("x", x, MOVES_MC);
	MOVED("y", y, MOVES_MC);
}

CASE(rename, a_moved_directory_keeps_what_is_in_it_and_who_is_in_it)
{
	char cwd[PATH_MAX];
	struct stat st;
	int dir, file;

	NEED(mkdir("a", 0755));
	NEED(mkdir("a/b", 0755));
	NEED(mkdir("to", 0755));
	make_file("a/b/f", "deep");
	dir = (int)NEED(open("a/b", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	file = (int)NEED(open("a/b/f", O_RDWR | O_CLOEXEC));
	NEED(chdir("a/b"));
	OK(rename("../../a", "../../to/moved"));
	OK(stat("f", &st));
	NEED(getcwd(cwd, sizeof(cwd)) ? 0 : -1);
	TRUE(strstr(cwd, "/to/moved/b"));
	IS(ino_of(".."), ino_of("../../../to/moved"));
	OK(fstatat(dir, "f", &st, 0));
	OK(pwrite(file, "DEEP", 4, 0));
	NEED(fchdir(dir));
	make_file("g", "");
	NEED(chdir("../../.."));
	CONTENT_IS("to/moved/b/f", "DEEP");
	TRUE(exists("to/moved/b/g"));
	IS(nlink_of("to"), 3);
	IS(ino_of("to/moved/.."), ino_of("to"));
	close(dir);
	close(file);
}

CASE(rename, a_symlink_is_moved_and_not_followed)
{
	char target[64];

	make(LINK_FILE, "link");
	NEED(mkdir("d", 0755));
	OK(rename("link", "d/link"));
	IS(readlink("d/link", target, sizeof(target)), 7);
	TRUE(exists("link.to"));
	make_file("f", "f");
	NEED(symlink("f", "to-f"));
	make_file("g", "g");
	OK(rename("g", "to-f"));
	CONTENT_IS("f", "f");
	CONTENT_IS("to-f", "g");
	TRUE(S_ISREG(stat_of("to-f").st_mode));
}

CASE(rename, a_thousand_in_a_row)
{
	char from[32], to[32];
	unsigned i;

	NEED(mkdir("x", 0755));
	NEED(mkdir("y", 0755));
	make_file("x/0", "here");
	for (i = 0; i < 1000; i++) {
		snprintf(from, sizeof(from), "%c/%u", i % 2 ? 'y' : 'x', i);
		snprintf(to, sizeof(to), "%c/%u", i % 2 ? 'x' : 'y', i + 1);
		NEED(rename(from, to));
		if (exists(from))
			NEED(-1);
	}
	CONTENT_IS("x/1000", "here");
	OK(unlink("x/1000"));
	OK(rmdir("x"));
	OK(rmdir("y"));
}

/* Save as editors do: write beside, rename over; a reader must see one whole version or another. */

#define VERSION_BYTES 9000

static void replace_often(void *arg)
{
	char data[VERSION_BYTES];
	unsigned i;
	int fd;

	for (i = 0; i < 400; i++) {
		memset(data, 'a' + (int)(i % 26), sizeof(data));
		fd = (int)NEED(open("new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
		IS(write(fd, data, sizeof(data)), sizeof(data));
		close(fd);
		NEED(rename("new", "target"));
	}
}

CASE(rename, a_reader_sees_the_old_or_the_new_file_whole)
{
	char data[VERSION_BYTES + 1];
	unsigned reads = 0;
	pid_t pid;
	ssize_t n, i;
	int fd, status;

	memset(data, 'a', VERSION_BYTES);
	data[VERSION_BYTES] = '\0';
	make_file("target", data);
	pid = start(replace_often, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		fd = (int)NEED(open("target", O_RDONLY | O_CLOEXEC));
		n = read(fd, data, sizeof(data));
		close(fd);
		if (!IS(n, VERSION_BYTES))
			break;
		for (i = 1; i < n && data[i] == data[0];)
			i++;
		if (!IS(i, n))
			break;
		reads++;
	}
	TRUE(reads > 0);
	IS(status, 0);
}

static void exchange_often(void *arg)
{
	unsigned i;

	for (i = 0; i < 1000; i++)
		NEED(rename_flags("a", "b", RENAME_EXCHANGE));
}

CASE(rename, no_moment_without_the_name_while_two_are_exchanged)
{
	struct stat st;
	pid_t pid;
	int status;

	make_file("a", "a");
	make_file("b", "b");
	pid = start(exchange_often, NULL);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		NEED(stat("a", &st));
		NEED(stat("b", &st));
	}
	IS(status, 0);
	TRUE(ino_of("a") != ino_of("b"));
}

/* Two processes move directories past each other; no cycle may come of it. */
static void move_about(void *arg)
{
	const char *self = arg;
	char from[32], to[32];
	unsigned i;

	snprintf(from, sizeof(from), "%s", self);
	snprintf(to, sizeof(to), "%s/%s", strcmp(self, "p") == 0 ? "q" : "p", self);
	for (i = 0; i < 500; i++) {
		if (rename(from, to) == 0)
			NEED(rename(to, from));
		else if (errno != EINVAL && errno != ENOENT)
			NEED(-1);
	}
}

CASE(rename, directories_moved_past_each_other_make_no_circle)
{
	char p[] = "p", q[] = "q";
	pid_t a, b;

	NEED(mkdir("p", 0755));
	NEED(mkdir("q", 0755));
	a = start(move_about, p);
	b = start(move_about, q);
	gather(a);
	gather(b);
	IS(nlink_of("p"), 2);
	IS(nlink_of("q"), 2);
	OK(rmdir("p"));
	OK(rmdir("q"));
}
