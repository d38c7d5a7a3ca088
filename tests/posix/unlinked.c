/*
 * Files without names: removed while open, or never named at all.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "tests/posix/posix.h"

CASE(unlinked, a_removed_file_lives_while_it_is_open)
{
	struct stat st;
	int fd = open_new("f");

	write_pattern(fd, 0, 200000, 1);
	OK(unlink("f"));
	FAILS(stat("f", &st), ENOENT);
	st = stat_fd(fd);
	IS(st.st_nlink, 0);
	IS(st.st_size, 200000);
	PATTERN_AT(fd, 0, 200000, 1);
	write_pattern(fd, 100000, 200000, 2);
	PATTERN_AT(fd, 100000, 200000, 2);
	OK(ftruncate(fd, 50));
	IS(stat_fd(fd).st_size, 50);
	PATTERN_AT(fd, 0, 50, 1);
	OK(fchmod(fd, 0600));
	IS(stat_fd(fd).st_mode & 07777, 0600);
	OK(futimens(fd, (struct timespec[]){ { 1, 2 }, { 3, 4 } }));
	IS(stat_fd(fd).st_mtim.tv_nsec, 4);
	OK(fsync(fd));
	if (fsetxattr(fd, "user.a", "v", 1, 0) == 0)
		IS(fgetxattr(fd, "user.a", &(char){ 0 }, 1), 1);
	else
		IS(errno, EOPNOTSUPP);
	close(fd);
}

CASE(unlinked, a_new_file_of_that_name_is_another)
{
	int old = open_new("f"), new;

	write_pattern(old, 0, 1000, 1);
	OK(unlink("f"));
	new = open_new("f");
	TRUE(stat_fd(old).st_ino != stat_fd(new).st_ino);
	IS(stat_fd(new).st_size, 0);
	write_pattern(new, 0, 500, 2);
	PATTERN_AT(old, 0, 1000, 1);
	PATTERN_AT(new, 0, 500, 2);
	OK(ftruncate(old, 0));
	IS(size_of("f"), 500);
	close(old);
	PATTERN_AT(new, 0, 500, 2);
	close(new);
}

CASE(unlinked, the_file_that_was_renamed_over_lives_on)
{
	int fd = open_new("f");

	write_pattern(fd, 0, 70000, 1);
	make_file("g", "new");
	OK(rename("g", "f"));
	IS(stat_fd(fd).st_nlink, 0);
	PATTERN_AT(fd, 0, 70000, 1);
	write_pattern(fd, 70000, 70000, 1);
	PATTERN_AT(fd, 0, 140000, 1);
	CONTENT_IS("f", "new");
	close(fd);
	CONTENT_IS("f", "new");
}

CASE(unlinked, it_can_be_opened_again_through_proc)
{
	char proc[64];
	int fd = open_new("f"), again;

	write_pattern(fd, 0, 5000, 1);
	OK(unlink("f"));
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	again = (int)NEED(open(proc, O_RDWR | O_CLOEXEC));
	PATTERN_AT(again, 0, 5000, 1);
	write_pattern(again, 5000, 100, 1);
	close(fd);
	PATTERN_AT(again, 0, 5100, 1);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", again);
	fd = (int)NEED(open(proc, O_RDWR | O_TRUNC | O_CLOEXEC));
	IS(stat_fd(again).st_size, 0);
	close(again);
	close(fd);
}

static void use_in_child(void *arg)
{
	int fd = *(int *)arg;

	PATTERN_AT(fd, 0, 1000, 1);
	write_pattern(fd, 1000, 1000, 1);
}

CASE(unlinked, a_child_inherits_it)
{
	int fd = open_new("f");

	write_pattern(fd, 0, 1000, 1);
	OK(unlink("f"));
	gather(start(use_in_child, &fd));
	PATTERN_AT(fd, 0, 2000, 1);
	close(fd);
}

CASE(unlinked, a_mapping_keeps_it)
{
	char *map, want[10000];
	int fd = open_new("f");

	write_pattern(fd, 0, 10000, 1);
	map = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map == MAP_FAILED ? -1 : 0);
	OK(unlink("f"));
	close(fd);
	pattern(want, 10000, 0, 1);
	IS(memcmp(map, want, 10000), 0);
	pattern(map, 10000, 0, 2);
	OK(msync(map, 10000, MS_SYNC));
	OK(madvise(map, 10000, MADV_DONTNEED));
	pattern(want, 10000, 0, 2);
	IS(memcmp(map, want, 10000), 0);
	munmap(map, 10000);
}

CASE(unlinked, five_hundred_at_once)
{
	enum { N = 500 };
	static int fds[N];
	char name[32];
	unsigned i;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%u", i % 10); /* the same names again and again */
		fds[i] = open_new(name);
		write_pattern(fds[i], 0, 1000 + i * 37, i);
		NEED(unlink(name));
	}
	for (i = 0; i < N; i++) {
		trying("file %u", i);
		IS(stat_fd(fds[i]).st_size, 1000 + i * 37);
		if (!PATTERN_AT(fds[i], 0, 1000 + i * 37, i))
			break;
	}
	for (i = 0; i < N; i++)
		close(fds[i]);
}

CASE(unlinked, a_removed_directory_is_empty_and_stays_so)
{
	struct dirent *e;
	char cwd[PATH_MAX];
	struct stat st;
	int fd;
	DIR *d;

	NEED(mkdir("d", 0755));
	fd = (int)NEED(open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	OK(rmdir("d"));
	IS(stat_fd(fd).st_nlink, 0);
	FAILS(openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), ENOENT);
	FAILS(mkdirat(fd, "f", 0755), ENOENT);
	FAILS(fstatat(fd, "f", &st, 0), ENOENT);
	make_file("file", "");
	FAILS(linkat(AT_FDCWD, "file", fd, "l", 0), ENOENT);
	FAILS(renameat(AT_FDCWD, "file", fd, "r"), ENOENT);
	FAILS(symlinkat("x", fd, "s"), ENOENT);
	d = fdopendir(fd);
	NEED(d ? 0 : -1);
	while ((e = readdir(d)))
		TRUE(strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
	closedir(d);
	NEED(mkdir("here", 0755));
	NEED(chdir("here"));
	OK(rmdir("../here"));
	IS(getcwd(cwd, sizeof(cwd)) != NULL, false);
	IS(errno, ENOENT);
	FAILS(open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), ENOENT);
	OK(stat(".", &st));
	OK(chdir(".."));
	TRUE(exists("file"));
}

/* --- O_TMPFILE ------------------------------------------------------------------------------ */

static int tmpfile_in(const char *dir, int flags)
{
	int fd = open(dir, O_TMPFILE | O_CLOEXEC | flags, 0640);

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		skip("no O_TMPFILE on this file system");
	return (int)NEED(fd);
}

static unsigned entries(const char *dir)
{
	unsigned n = 0;
	DIR *d = opendir(dir);

	NEED(d ? 0 : -1);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

CASE(unlinked, a_tmpfile_has_no_name_until_it_is_linked)
{
	char proc[64];
	struct stat st;
	int fd;

	NEED(mkdir("d", 0755));
	fd = tmpfile_in("d", O_RDWR);
	st = stat_fd(fd);
	IS(st.st_nlink, 0);
	IS(st.st_mode, S_IFREG | 0640);
	IS(st.st_uid, geteuid());
	IS(entries("d"), 0);
	write_pattern(fd, 0, 100000, 1);
	OK(fsync(fd));
	PATTERN_AT(fd, 0, 100000, 1);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	OK(linkat(AT_FDCWD, proc, AT_FDCWD, "d/named", AT_SYMLINK_FOLLOW));
	IS(nlink_of("d/named"), 1);
	IS(ino_of("d/named"), st.st_ino);
	IS(size_of("d/named"), 100000);
	OK(linkat(AT_FDCWD, proc, AT_FDCWD, "second", AT_SYMLINK_FOLLOW));
	IS(nlink_of("second"), 2);
	FAILS(linkat(AT_FDCWD, proc, AT_FDCWD, "second", AT_SYMLINK_FOLLOW), EEXIST);
	close(fd);
	fd = (int)NEED(open("d/named", O_RDONLY | O_CLOEXEC));
	PATTERN_AT(fd, 0, 100000, 1);
	close(fd);
}

CASE(unlinked, a_tmpfile_of_its_own_is_never_linked)
{
	char proc[64];
	int fd = tmpfile_in(".", O_RDWR | O_EXCL);

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	FAILS(linkat(AT_FDCWD, proc, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), ENOENT);
	close(fd);
	IS(entries("."), 0);
}

CASE(unlinked, a_tmpfile_needs_a_directory_and_a_writer)
{
	close(tmpfile_in(".", O_WRONLY));
	make_file("f", "");
	FAILS(open(".", O_TMPFILE | O_RDONLY | O_CLOEXEC, 0644), EINVAL);
	FAILS(open("none", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644), ENOENT);
	FAILS(open("f", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644), ENOTDIR);
}

CASE(unlinked, a_hundred_tmpfiles_leave_nothing)
{
	unsigned i;
	int fds[100];

	for (i = 0; i < 100; i++) {
		fds[i] = tmpfile_in(".", O_RDWR);
		write_pattern(fds[i], 0, 5000, i);
	}
	for (i = 0; i < 100; i++) {
		PATTERN_AT(fds[i], 0, 5000, i);
		close(fds[i]);
	}
	IS(entries("."), 0);
}
