/*
 * Bytes: written, read, appended, cut and copied.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/posix/posix.h"

CASE(data, what_is_written_is_read_whatever_size_and_place)
{
	static const size_t sizes[] = {
		1,     2,     511,   4095,  4096,   4097,   8191,    16384,
		65535, 65536, 65537, 70000, 131072, 131073, 1048576, 1048577
	};
	size_t i, k;
	int fd;

	for (i = 0; i < ARRAY_LEN(sizes); i++)
		for (k = 0; k < ARRAY_LEN(sizes); k += 3) {
			uint64_t off = sizes[k] - 1;

			trying("%zu bytes at %ju", sizes[i], (uintmax_t)off);
			fd = open_new("f");
			write_pattern(fd, off, sizes[i], (unsigned)i);
			IS(stat_fd(fd).st_size, off + sizes[i]);
			ZEROS_AT(fd, 0, off);
			PATTERN_AT(fd, off, sizes[i], (unsigned)i);
			IS(pread(fd, &(char){ 0 }, 1, (off_t)(off + sizes[i])), 0);
			close(fd);
			fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
			ZEROS_AT(fd, 0, off);
			PATTERN_AT(fd, off, sizes[i], (unsigned)i);
			close(fd);
			OK(unlink("f"));
		}
}

CASE(data, overwriting_changes_just_those_bytes)
{
	struct rng r = { 42 };
	enum { SIZE = 300000 };
	static uint8_t model[SIZE], have[SIZE];
	unsigned i;
	int fd = open_new("f");

	pattern(model, SIZE, 0, 1);
	IS(pwrite(fd, model, SIZE, 0), SIZE);
	for (i = 0; i < 300; i++) {
		size_t off = rng_below(&r, SIZE), len = 1 + rng_below(&r, i % 3 ? 200 : 70000);

		if (len > SIZE - off)
			len = SIZE - off;
		pattern(model + off, len, off, i);
		IS(pwrite(fd, model + off, len, (off_t)off), len);
	}
	IS(pread(fd, have, SIZE, 0), SIZE);
	IS(memcmp(have, model, SIZE), 0);
	IS(stat_fd(fd).st_size, SIZE);
	close(fd);
}

CASE(data, truncating_cuts_and_growing_shows_zeros)
{
	static const off_t sizes[] = {
		0, 1, 4095, 4096, 65535, 65536, 65537, 100000, 131072, 200000
	};
	size_t i, k;
	int fd = open_new("f");

	for (i = 0; i < ARRAY_LEN(sizes); i++)
		for (k = 0; k < ARRAY_LEN(sizes); k++) {
			off_t cut = sizes[i] < sizes[k] ? sizes[i] : sizes[k];

			trying("to %jd, then %jd", (intmax_t)sizes[i], (intmax_t)sizes[k]);
			NEED(ftruncate(fd, 0));
			write_pattern(fd, 0, 150000, 3);
			OK(ftruncate(fd, sizes[i]));
			IS(stat_fd(fd).st_size, sizes[i]);
			OK(truncate("f", sizes[k]));
			IS(size_of("f"), sizes[k]);
			if (cut > 150000)
				cut = 150000;
			PATTERN_AT(fd, 0, (size_t)cut, 3);
			ZEROS_AT(fd, (uint64_t)cut, (size_t)(sizes[k] - cut));
		}
	close(fd);
}

CASE(data, truncating_refuses_what_it_cannot_do)
{
	int fd;

	make(FILE_, "f");
	make(DIR_, "d");
	make(FIFO_, "p");
	FAILS(truncate("f", -1), EINVAL);
	FAILS(truncate("d", 0), EISDIR);
	FAILS(truncate("p", 0), EINVAL);
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	FAILS(ftruncate(fd, 0), EINVAL, EBADF);
	FAILS(write(fd, "x", 1), EBADF);
	close(fd);
	fd = (int)NEED(open("f", O_WRONLY | O_CLOEXEC));
	FAILS(read(fd, &(char){ 0 }, 1), EBADF);
	FAILS(ftruncate(fd, -1), EINVAL);
	close(fd);
	/* The largest size is the file system's own affair; more than it is EFBIG. */
	if (truncate("f", INT64_MAX) != 0)
		FAILS(truncate("f", INT64_MAX), EFBIG);
	else
		IS(size_of("f"), INT64_MAX);
	OK(truncate("f", 0));
}

CASE(data, o_trunc_empties_and_o_excl_and_o_append_hold)
{
	char have[16] = "";
	int fd, other;

	make_file("f", "content");
	fd = (int)NEED(open("f", O_WRONLY | O_TRUNC | O_CLOEXEC));
	IS(size_of("f"), 0);
	OK(write(fd, "new", 3));
	close(fd);
	CONTENT_IS("f", "new");
	fd = (int)NEED(open("f", O_RDWR | O_APPEND | O_CLOEXEC));
	IS(lseek(fd, 0, SEEK_CUR), 0);
	OK(write(fd, "er", 2));
	IS(lseek(fd, 0, SEEK_CUR), 5);
	OK(lseek(fd, 0, SEEK_SET));
	OK(write(fd, "!", 1));
	other = (int)NEED(open("f", O_WRONLY | O_APPEND | O_CLOEXEC));
	OK(write(other, "?", 1));
	OK(write(fd, ".", 1));
	IS(pread(fd, have, sizeof(have), 0), 8);
	IS(strcmp(have, "newer!?."), 0);
	OK(pwrite(fd, "+", 1, 0)); /* Linux appends, whatever offset is given */
	CONTENT_IS("f", "newer!?.+");
	close(fd);
	close(other);
	fd = (int)NEED(open("f", O_RDONLY | O_TRUNC | O_CLOEXEC));
	IS(size_of("f"), 0);
	close(fd);
	make_file("f", "abc");
	fd = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
	NEED(fcntl(fd, F_SETFL, O_APPEND));
	OK(write(fd, "d", 1));
	CONTENT_IS("f", "abcd");
	close(fd);
}

CASE(data, nothing_written_changes_nothing)
{
	struct stamp was;
	int fd = open_new("f");

	was = stamp_of("f");
	tick();
	IS(pwrite(fd, "", 0, 1000), 0);
	IS(stat_fd(fd).st_size, 0);
	MOVED("f", was, MOVES_NOTHING);
	close(fd);
}

CASE(data, descriptors_of_one_file_see_each_other)
{
	char have[8] = "";
	int a = open_new("f"), b;

	b = (int)NEED(open("f", O_RDWR | O_CLOEXEC));
	OK(pwrite(a, "12345678", 8, 0));
	IS(pread(b, have, 8, 0), 8);
	IS(memcmp(have, "12345678", 8), 0);
	OK(pwrite(b, "abcd", 4, 2));
	IS(pread(a, have, 8, 0), 8);
	IS(memcmp(have, "12abcd78", 8), 0);
	OK(ftruncate(a, 3));
	IS(pread(b, have, 8, 0), 3);
	IS(lseek(b, 0, SEEK_END), 3);
	OK(ftruncate(b, 0));
	IS(pread(a, have, 8, 0), 0);
	close(a);
	close(b);
}

CASE(data, vectors_and_seeks)
{
	char a[3], b[5];
	struct iovec out[2] = { { .iov_base = a, .iov_len = 3 }, { .iov_base = b, .iov_len = 5 } };
	char one[] = "one", three[] = "three";
	struct iovec in[2] = { { one, 3 }, { three, 5 } };
	int fd = open_new("f");

	IS(writev(fd, in, 2), 8);
	IS(lseek(fd, -5, SEEK_END), 3);
	IS(read(fd, b, 5), 5);
	IS(memcmp(b, "three", 5), 0);
	IS(preadv(fd, out, 2, 0), 8);
	IS(memcmp(a, "one", 3), 0);
	IS(pwritev2(fd, in, 1, 0, RWF_APPEND), 3);
	IS(stat_fd(fd).st_size, 11);
	FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
	FAILS(lseek(fd, 0, 99), EINVAL);
	FAILS(pread(fd, a, 1, -1), EINVAL);
	IS(lseek(fd, 1000, SEEK_SET), 1000);
	IS(read(fd, a, 1), 0);
	IS(stat_fd(fd).st_size, 11);
	close(fd);
}

CASE(data, syncing_works_on_files_and_directories)
{
	int fd = open_new("f"), dir;

	write_pattern(fd, 0, 100000, 1);
	OK(fsync(fd));
	OK(fdatasync(fd));
	OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	close(fd);
	dir = (int)NEED(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	OK(fsync(dir));
	OK(syncfs(dir));
	close(dir);
	fd = (int)NEED(open("g", O_RDWR | O_CREAT | O_SYNC | O_CLOEXEC, 0644));
	write_pattern(fd, 0, 10000, 2);
	PATTERN_AT(fd, 0, 10000, 2);
	close(fd);
	fd = (int)NEED(open("h", O_RDWR | O_CREAT | O_DSYNC | O_CLOEXEC, 0644));
	write_pattern(fd, 0, 10000, 2);
	PATTERN_AT(fd, 0, 10000, 2);
	close(fd);
}

CASE(data, direct_io_agrees_with_the_cache)
{
	enum { N = 1 << 18 };
	void *data = NULL;
	int direct, plain = open_new("f");

	write_pattern(plain, 0, N, 5);
	direct = open("f", O_RDWR | O_DIRECT | O_CLOEXEC);
	if (direct < 0 && errno == EINVAL)
		skip("no O_DIRECT on this file system");
	NEED(direct);
	NEED(posix_memalign(&data, 4096, N) ? -1 : 0);
	IS(pread(direct, data, N, 0), N);
	PATTERN_AT(plain, 0, N, 5);
	pattern(data, 8192, 4096, 6);
	IS(pwrite(direct, data, 8192, 4096), 8192);
	PATTERN_AT(plain, 4096, 8192, 6);
	PATTERN_AT(plain, 0, 4096, 5);
	PATTERN_AT(plain, 12288, N - 12288, 5);
	write_pattern(plain, 0, 4096, 7);
	IS(pread(direct, data, 4096, 0), 4096);
	pattern((char *)data + 8192, 4096, 0, 7);
	IS(memcmp(data, (char *)data + 8192, 4096), 0);
	IS(pwrite(direct, data, 4096, N), 4096);
	IS(stat_fd(plain).st_size, N + 4096);
	free(data);
	close(direct);
	close(plain);
}

CASE(data, a_limit_on_the_size_stops_a_write)
{
	int fd = open_new("f");

	signal(SIGXFSZ, SIG_IGN);
	NEED(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 10000, 10000 }));
	write_pattern(fd, 0, 9000, 1);
	IS(pwrite(fd, (char[2000]){ 0 }, 2000, 9000), 1000);
	FAILS(pwrite(fd, "x", 1, 10000), EFBIG);
	FAILS(ftruncate(fd, 10001), EFBIG);
	OK(ftruncate(fd, 10000));
	IS(stat_fd(fd).st_size, 10000);
	PATTERN_AT(fd, 0, 9000, 1);
	close(fd);
}

/* --- copying ----------------------------------------------------------------------------- */

CASE(data, copy_file_range_copies_exactly)
{
	static const struct {
		off_t from, to;
		size_t len;
	} runs[] = {
		{ 0, 0, 300000 },     { 1, 0, 100 },          { 65536, 65536, 65536 },
		{ 65536, 0, 131072 }, { 100, 70000, 65536 },  { 4096, 12288, 8192 },
		{ 299990, 0, 10 },    { 0, 1000000, 300000 }, { 131072, 131072, 168928 },
		{ 65536, 65537, 1 },
	};
	int from = open_new("from"), to;
	size_t i;

	write_pattern(from, 0, 300000, 1);
	for (i = 0; i < ARRAY_LEN(runs); i++) {
		off_t in = runs[i].from, out = runs[i].to;
		size_t left = runs[i].len, k;
		ssize_t n = 1;
		uint8_t *have = malloc(runs[i].len), *want = malloc(runs[i].len);

		NEED(have && want ? 0 : -1);
		trying("%zu bytes from %jd to %jd", runs[i].len, (intmax_t)in, (intmax_t)out);
		to = open_new("to");
		write_pattern(to, 0, 200000, 2);
		for (; left && n > 0; left -= (size_t)n)
			n = NEED(copy_file_range(from, &in, to, &out, left, 0));
		IS(left, 0);
		IS(in, runs[i].from + (off_t)runs[i].len);
		IS(out, runs[i].to + (off_t)runs[i].len);
		pattern(want, runs[i].len, (uint64_t)runs[i].from, 1);
		IS(pread(to, have, runs[i].len, runs[i].to), runs[i].len);
		for (k = 0; k < runs[i].len && have[k] == want[k];)
			k++;
		IS(k, runs[i].len);
		if (runs[i].to < 200000)
			PATTERN_AT(to, 0, (size_t)runs[i].to, 2);
		if (out < 200000)
			PATTERN_AT(to, (uint64_t)out, (size_t)(200000 - out), 2);
		PATTERN_AT(from, 0, 300000, 1);
		free(have);
		free(want);
		close(to);
		OK(unlink("to"));
	}
	close(from);
}

CASE(data, a_copy_and_its_source_go_separate_ways)
{
	int from = open_new("from"), to = open_new("to");
	off_t in = 0, out = 0;
	size_t left = 200000;

	write_pattern(from, 0, left, 1);
	while (left) {
		ssize_t n = NEED(copy_file_range(from, &in, to, &out, left, 0));

		if (n == 0)
			break;
		left -= (size_t)n;
	}
	write_pattern(from, 1000, 100, 2);
	write_pattern(to, 70000, 100, 3);
	PATTERN_AT(to, 0, 70000, 1);
	PATTERN_AT(to, 70000, 100, 3);
	PATTERN_AT(from, 1100, 198900, 1);
	OK(ftruncate(from, 0));
	PATTERN_AT(to, 70100, 129900, 1);
	OK(unlink("from"));
	close(from);
	PATTERN_AT(to, 0, 70000, 1);
	close(to);
}

CASE(data, copy_file_range_refuses_as_it_should)
{
	int a = open_new("a"), b = open_new("b"), fd, dir;
	off_t in, out;

	write_pattern(a, 0, 10000, 1);
	in = 10000, out = 0;
	IS(copy_file_range(a, &in, b, &out, 10, 0), 0);
	in = 5000, out = 0;
	IS(copy_file_range(a, &in, b, &out, 10000, 0), 5000);
	in = 0, out = 100;
	FAILS(copy_file_range(a, &in, a, &out, 1000, 0), EINVAL);
	in = 0, out = 20000;
	IS(copy_file_range(a, &in, a, &out, 1000, 0), 1000);
	ZEROS_AT(a, 10000, 10000);
	FAILS(copy_file_range(a, &in, b, &out, 10, 1), EINVAL);
	fd = (int)NEED(open("b", O_RDONLY | O_CLOEXEC));
	FAILS(copy_file_range(a, NULL, fd, NULL, 10, 0), EBADF);
	close(fd);
	fd = (int)NEED(open("b", O_WRONLY | O_APPEND | O_CLOEXEC));
	FAILS(copy_file_range(a, NULL, fd, NULL, 10, 0), EBADF);
	close(fd);
	dir = (int)NEED(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	FAILS(copy_file_range(dir, NULL, b, NULL, 10, 0), EISDIR);
	close(dir);
	close(a);
	close(b);
}

CASE(data, sendfile_copies_too)
{
	int from = open_new("from"), to = open_new("to");
	off_t at = 0;

	write_pattern(from, 0, 100000, 1);
	while (at < 100000)
		if (NEED(sendfile(to, from, &at, (size_t)(100000 - at))) == 0)
			break;
	PATTERN_AT(to, 0, 100000, 1);
	close(from);
	close(to);
}

CASE(data, cp_makes_a_faithful_copy)
{
	int fd = open_new("from");

	write_pattern(fd, 0, 50000, 1);
	write_pattern(fd, 5 << 20, 100000, 1);
	OK(fchmod(fd, 0751));
	close(fd);
	IS(system("cp --reflink=auto --preserve=all from to && cmp from to"), 0);
	IS(stat_of("to").st_mode, stat_of("from").st_mode);
	IS(time_cmp(stat_of("to").st_mtim, stat_of("from").st_mtim), 0);
	IS(system("cp --sparse=always from sparse && cmp from sparse"), 0);
	IS(system("cp --reflink=never --sparse=never from full && cmp from full"), 0);
}

/* --- many at once ------------------------------------------------------------------------ */

enum { APPENDERS = 4, RECORDS = 500, RECORD = 113 };

static void append_records(void *arg)
{
	char record[RECORD + 1];
	unsigned who = *(unsigned *)arg, i;
	int fd = (int)NEED(open("log", O_WRONLY | O_APPEND | O_CLOEXEC));

	for (i = 0; i < RECORDS; i++) {
		snprintf(record, sizeof(record), "%u %6u ", who, i);
		memset(record + 9, 'a' + (int)who, RECORD - 9);
		record[RECORD - 1] = '\n';
		if (write(fd, record, RECORD) != RECORD)
			NEED(-1);
	}
	close(fd);
}

CASE(data, appends_of_four_processes_all_arrive_whole)
{
	unsigned who[APPENDERS], next[APPENDERS] = { 0 }, i, n;
	pid_t pids[APPENDERS];
	char line[RECORD + 2];
	FILE *f;

	close(open_new("log"));
	for (i = 0; i < APPENDERS; i++) {
		who[i] = i;
		pids[i] = start(append_records, &who[i]);
	}
	for (i = 0; i < APPENDERS; i++)
		gather(pids[i]);
	IS(size_of("log"), APPENDERS * RECORDS * RECORD);
	f = fopen("log", "re");
	NEED(f ? 0 : -1);
	while (fgets(line, sizeof(line), f)) {
		if (!TRUE(strlen(line) == RECORD && sscanf(line, "%u %u", &i, &n) == 2 &&
			  i < APPENDERS && line[RECORD - 2] == 'a' + (int)i))
			break;
		if (!IS(n, next[i]++))
			break;
	}
	fclose(f);
	for (i = 0; i < APPENDERS; i++)
		IS(next[i], RECORDS);
}

static void write_region(void *arg)
{
	unsigned who = *(unsigned *)arg, i;
	int fd = (int)NEED(open("shared", O_RDWR | O_CLOEXEC));

	for (i = 0; i < 200; i++)
		write_pattern(fd, (uint64_t)(i * APPENDERS + who) * 1000, 1000, who + 1);
	close(fd);
}

CASE(data, processes_that_write_beside_each_other_do_not_disturb)
{
	unsigned who[APPENDERS], i;
	pid_t pids[APPENDERS];
	int fd = open_new("shared");

	for (i = 0; i < APPENDERS; i++) {
		who[i] = i;
		pids[i] = start(write_region, &who[i]);
	}
	for (i = 0; i < APPENDERS; i++)
		gather(pids[i]);
	for (i = 0; i < 200 * APPENDERS; i++)
		if (!PATTERN_AT(fd, (uint64_t)i * 1000, 1000, i % APPENDERS + 1))
			break;
	close(fd);
}

CASE(data, a_file_of_64_mib_comes_back)
{
	enum { SIZE = 64 << 20 };
	double t = now_s();
	int fd = open_new("f");

	write_pattern(fd, 0, SIZE, 9);
	OK(fsync(fd));
	close(fd);
	fd = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ? -1 : 0);
	PATTERN_AT(fd, 0, SIZE, 9);
	close(fd);
	note("64 MiB written, synced and read in %.2f s", now_s() - t);
}
