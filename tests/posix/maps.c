/*
 * Memory mappings and execution.
 */
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "tests/posix/posix.h"

static char *map_shared(int fd, size_t len, int prot)
{
	char *map = mmap(NULL, len, prot, MAP_SHARED, fd, 0);

	NEED(map == MAP_FAILED ? -1 : 0);
	return map;
}

static char *map_rw(int fd, size_t len)
{
	return map_shared(fd, len, PROT_READ | PROT_WRITE);
}

CASE(maps, what_a_shared_mapping_writes_read_sees)
{
	enum { N = 300000 };
	char *map;
	int fd = open_new("f"), other;

	NEED(ftruncate(fd, N));
	map = map_rw(fd, N);
	pattern(map, N, 0, 1);
	OK(msync(map, N, MS_SYNC));
	PATTERN_AT(fd, 0, N, 1);
	other = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	PATTERN_AT(other, 0, N, 1);
	pattern(map + 70000, 10, 70000, 2);
	OK(msync(map + 65536, 65536, MS_SYNC));
	PATTERN_AT(other, 70000, 10, 2);
	munmap(map, N);
	close(fd);
	PATTERN_AT(other, 0, 70000, 1);
	PATTERN_AT(other, 70010, N - 70010, 1);
	close(other);
}

CASE(maps, what_write_writes_a_mapping_sees)
{
	char *map, want[100];
	int fd = open_new("f");

	write_pattern(fd, 0, 100000, 1);
	map = map_shared(fd, 100000, PROT_READ);
	pattern(want, 100, 5000, 1);
	IS(memcmp(map + 5000, want, 100), 0);
	write_pattern(fd, 5000, 100, 2);
	pattern(want, 100, 5000, 2);
	IS(memcmp(map + 5000, want, 100), 0);
	NEED(ftruncate(fd, 5050));
	NEED(ftruncate(fd, 100000));
	IS(map[5050], 0);
	IS(map[90000], 0);
	munmap(map, 100000);
	close(fd);
}

CASE(maps, without_msync_it_is_there_after_unmapping)
{
	char *map;
	int fd = open_new("f");

	NEED(ftruncate(fd, 50000));
	map = map_rw(fd, 50000);
	close(fd);
	pattern(map, 50000, 0, 3);
	munmap(map, 50000);
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	PATTERN_AT(fd, 0, 50000, 3);
	close(fd);
}

CASE(maps, a_private_mapping_keeps_its_writes_to_itself)
{
	char *map;
	int fd = open_new("f");

	write_pattern(fd, 0, 10000, 1);
	map = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(map == MAP_FAILED ? -1 : 0);
	memset(map, 'x', 10000);
	PATTERN_AT(fd, 0, 10000, 1);
	munmap(map, 10000);
	PATTERN_AT(fd, 0, 10000, 1);
	close(fd);
}

static sigjmp_buf after_bus;

NORETURN static void on_bus(int sig)
{
	siglongjmp(after_bus, 1);
}

static bool faults(const volatile char *p)
{
	if (sigsetjmp(after_bus, 1))
		return true;
	(void)*p;
	return false;
}

CASE(maps, beyond_the_end_is_a_bus_error)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map;
	int fd = open_new("f");

	signal(SIGBUS, on_bus);
	write_pattern(fd, 0, 100, 1);
	map = map_rw(fd, (size_t)page * 3);
	IS(faults(map), false);
	IS(faults(map + page), true);
	NEED(ftruncate(fd, page * 2));
	IS(faults(map + page), false);
	ZEROS_AT(fd, 100, (size_t)page * 2 - 100);
	map[page + 5] = 'y';
	OK(msync(map, (size_t)page * 2, MS_SYNC));
	IS(pread(fd, map + page + 100, 1, page + 5), 1);
	IS(map[page + 100], 'y');
	NEED(ftruncate(fd, 10));
	IS(faults(map + page), true);
	munmap(map, (size_t)page * 3);
	close(fd);
}

CASE(maps, the_tail_of_the_last_page_is_not_part_of_the_file)
{
	struct statfs fs;
	char *map;
	int fd = open_new("f");

	write_pattern(fd, 0, 100, 1);
	map = map_rw(fd, 4096);
	IS(map[100], 0);
	map[200] = 'x';
	OK(msync(map, 4096, MS_SYNC));
	IS(stat_fd(fd).st_size, 100);
	NEED(fstatfs(fd, &fs));
	if (fs.f_type == TMPFS_MAGIC)
		skip("tmpfs has only the page, and shows its tail when the file grows");
	NEED(ftruncate(fd, 4096));
	ZEROS_AT(fd, 100, 3996);
	munmap(map, 4096);
	close(fd);
}

CASE(maps, what_may_not_be_written_may_not_be_mapped_so)
{
	int fd, dir;

	make_file("f", "x");
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	IS(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED, true);
	IS(errno, EACCES);
	IS(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) == MAP_FAILED, false);
	close(fd);
	fd = (int)NEED(open("f", O_WRONLY | O_CLOEXEC));
	IS(mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, true);
	IS(errno, EACCES);
	close(fd);
	dir = (int)NEED(open(".", O_RDONLY | O_CLOEXEC));
	IS(mmap(NULL, 1, PROT_READ, MAP_SHARED, dir, 0) == MAP_FAILED, true);
	IS(errno, ENODEV);
	close(dir);
}

static void write_in_child(void *arg)
{
	char *map = arg;

	memcpy(map + 4000, "from the child", 14);
}

CASE(maps, two_processes_share_a_mapping)
{
	char *map;
	int fd = open_new("f");

	NEED(ftruncate(fd, 8192));
	map = map_rw(fd, 8192);
	gather(start(write_in_child, map));
	IS(memcmp(map + 4000, "from the child", 14), 0);
	OK(msync(map, 8192, MS_SYNC));
	IS(pread(fd, map, 14, 4000), 14);
	IS(memcmp(map, "from the child", 14), 0);
	munmap(map, 8192);
	close(fd);
}

CASE(maps, a_hole_can_be_written_through_a_mapping)
{
	enum { N = 4 << 20 };
	char *map;
	int fd = open_new("f");

	NEED(ftruncate(fd, N));
	map = map_rw(fd, N);
	pattern(map + 1000000, 100, 1000000, 1);
	pattern(map + 3 * 1000000, 70000, 3 * 1000000, 1);
	OK(msync(map, N, MS_SYNC));
	munmap(map, N);
	ZEROS_AT(fd, 0, 1000000);
	PATTERN_AT(fd, 1000000, 100, 1);
	ZEROS_AT(fd, 1000100, 1999900);
	PATTERN_AT(fd, 3000000, 70000, 1);
	ZEROS_AT(fd, 3070000, N - 3070000);
	close(fd);
}

CASE(maps, a_mapping_outlives_the_name_and_the_descriptor)
{
	char *map, want[10000];
	int fd = open_new("f");

	write_pattern(fd, 0, 10000, 1);
	map = map_rw(fd, 10000);
	close(fd);
	make_file("g", "other");
	OK(rename("g", "f"));
	pattern(want, 10000, 0, 1);
	IS(memcmp(map, want, 10000), 0);
	memset(map, 'x', 10000);
	OK(msync(map, 10000, MS_SYNC));
	IS(map[9999], 'x');
	munmap(map, 10000);
	CONTENT_IS("f", "other");
}

/* --- execution --------------------------------------------------------------------------- */

static int run(const char *program)
{
	int status;
	pid_t pid = (pid_t)NEED(fork());

	if (pid == 0) {
		execl(program, program, (char *)NULL);
		_exit(errno == EACCES ? 100 : errno == ETXTBSY ? 101 : errno == ENOENT ? 102 : 103);
	}
	NEED(waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CASE(maps, a_copied_program_runs)
{
	int fd;

	IS(system("cp /bin/true prog && cp /bin/false prog2"), 0);
	IS(run("./prog"), 0);
	IS(run("./prog2"), 1);
	OK(chmod("prog", 0644));
	IS(run("./prog"), 100);
	OK(chmod("prog", 0755));
	fd = (int)NEED(open("prog", O_WRONLY | O_CLOEXEC));
	IS(run("./prog"), 101);
	close(fd);
	IS(run("./prog"), 0);
	OK(rename("prog2", "prog")); /* an update in place */
	IS(run("./prog"), 1);
	make_file("script", "#!/bin/sh\nexit 7\n");
	NEED(chmod("script", 0755));
	IS(run("./script"), 7);
	IS(run("./none"), 102);
}

CASE(maps, a_running_program_cannot_be_written)
{
	int status;
	pid_t pid;

	IS(system("cp /bin/sleep prog"), 0);
	pid = (pid_t)NEED(vfork());
	if (pid == 0) {
		execl("./prog", "prog", "60", (char *)NULL);
		_exit(1);
	}
	FAILS(open("prog", O_WRONLY | O_CLOEXEC), ETXTBSY);
	FAILS(truncate("prog", 0), ETXTBSY);
	OK(unlink("prog")); /* but removed */
	kill(pid, SIGKILL);
	NEED(waitpid(pid, &status, 0));
}
