/*
 * Sparse files: SEEK_DATA and SEEK_HOLE, fallocate, sizes nobody has a disk for.
 *
 * A file system may report data where there is a hole (the whole file, if it likes), and in
 * blocks as large as it likes; what it calls a hole must be zeros, and what was written must
 * be data.
 */
#include <sys/statvfs.h>

#include "tests/posix/posix.h"

/* Every byte that SEEK_DATA and SEEK_HOLE call a hole reads as zero; data and holes alternate. */
static void check_map(int fd, const char *what)
{
	off_t end = stat_fd(fd).st_size, at = 0, data, hole;

	trying("%s", what);
	while (at < end) {
		data = lseek(fd, at, SEEK_DATA);
		if (data < 0) {
			IS(errno, ENXIO);
			data = end;
		}
		TRUE(data >= at);
		if (data > at && data - at <= 64 << 20)
			ZEROS_AT(fd, (uint64_t)at, (size_t)(data - at));
		if (data == end)
			break;
		hole = OK(lseek(fd, data, SEEK_HOLE));
		if (!TRUE(hole > data && hole <= end))
			break;
		at = hole;
	}
	trying("%s", "");
}

/* Each byte of the range is data for SEEK_DATA. */
static void covered(int fd, off_t off, off_t len)
{
	off_t data = lseek(fd, off, SEEK_DATA), hole = lseek(fd, off, SEEK_HOLE);

	IS(data, off);
	SAY_IF(hole < off + len, "SEEK_HOLE from %jd is %jd, before the end of what was written",
	       (intmax_t)off, (intmax_t)hole);
}

static bool punch(int fd, off_t off, off_t len)
{
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len) == 0)
		return true;
	SAY_IF(errno != EOPNOTSUPP, "punching failed with %s", strerrorname_np(errno));
	return false;
}

CASE(holes, what_was_written_is_data_and_holes_are_zeros)
{
	static const off_t at[] = { 0, 1 << 20, 3 << 20, 3000000, 9 << 20 };
	size_t i;
	int fd = open_new("f");

	for (i = 0; i < ARRAY_LEN(at); i++)
		write_pattern(fd, (uint64_t)at[i], 10000, 1);
	NEED(ftruncate(fd, 20 << 20));
	for (i = 0; i < ARRAY_LEN(at); i++) {
		covered(fd, at[i], 10000);
		PATTERN_AT(fd, (uint64_t)at[i], 10000, 1);
	}
	check_map(fd, "as written");
	OK(fsync(fd));
	check_map(fd, "after fsync");
	for (i = 0; i < ARRAY_LEN(at); i++)
		covered(fd, at[i], 10000);
	close(fd);
}

CASE(holes, the_end_of_the_file_is_a_hole)
{
	int fd = open_new("f");

	FAILS(lseek(fd, 0, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, 0, SEEK_HOLE), ENXIO);
	write_pattern(fd, 0, 5000, 1);
	IS(lseek(fd, 0, SEEK_DATA), 0);
	IS(lseek(fd, 100, SEEK_DATA), 100);
	IS(lseek(fd, 0, SEEK_HOLE), 5000);
	IS(lseek(fd, 4999, SEEK_HOLE), 5000);
	FAILS(lseek(fd, 5000, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, 5000, SEEK_HOLE), ENXIO);
	FAILS(lseek(fd, 9999, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, -1, SEEK_DATA), ENXIO, EINVAL);
	NEED(ftruncate(fd, 10 << 20));
	TRUE(lseek(fd, 5 << 20, SEEK_HOLE) >= 5 << 20);
	close(fd);
}

CASE(holes, a_file_that_is_all_hole_takes_no_room)
{
	int fd = open_new("f");
	off_t data;

	NEED(ftruncate(fd, 100 << 20));
	IS(stat_fd(fd).st_size, 100 << 20);
	TRUE(stat_fd(fd).st_blocks < 100);
	data = lseek(fd, 0, SEEK_DATA);
	TRUE(data == 0 || (data == -1 && errno == ENXIO));
	IS(lseek(fd, 0, SEEK_HOLE) >= 0, true);
	ZEROS_AT(fd, 50 << 20, 100000);
	close(fd);
}

CASE(holes, punching_makes_zeros_of_just_that)
{
	static const struct {
		off_t off, len;
	} runs[] = {
		{ 0, 1 },          { 100, 200 },        { 4096, 4096 }, { 65536, 65536 },
		{ 60000, 140000 }, { 131072, 1000000 }, { 299999, 1 },  { 250000, 100000 },
		{ 0, 300000 },     { 300000, 1000 },    { 65535, 2 },
	};
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(runs); i++) {
		off_t end = runs[i].off + runs[i].len < 300000 ? runs[i].off + runs[i].len : 300000;

		fd = open_new("f");
		write_pattern(fd, 0, 300000, 1);
		if (i % 2)
			OK(fsync(fd));
		trying("%jd bytes at %jd", (intmax_t)runs[i].len, (intmax_t)runs[i].off);
		if (!punch(fd, runs[i].off, runs[i].len))
			skip("no FALLOC_FL_PUNCH_HOLE on this file system");
		IS(stat_fd(fd).st_size, 300000);
		PATTERN_AT(fd, 0, (size_t)(runs[i].off < 300000 ? runs[i].off : 300000), 1);
		if (end > runs[i].off)
			ZEROS_AT(fd, (uint64_t)runs[i].off, (size_t)(end - runs[i].off));
		PATTERN_AT(fd, (uint64_t)end, (size_t)(300000 - end), 1);
		check_map(fd, "punched");
		write_pattern(fd, (uint64_t)runs[i].off, 10, 2);
		PATTERN_AT(fd, (uint64_t)runs[i].off, 10, 2);
		close(fd);
		NEED(unlink("f"));
	}
}

CASE(holes, punching_gives_room_back)
{
	blkcnt_t before;
	int fd = open_new("f");

	write_pattern(fd, 0, 8 << 20, 1);
	OK(fsync(fd));
	before = stat_fd(fd).st_blocks;
	TRUE(before >= (8 << 20) / 512 / 2);
	if (!punch(fd, 1 << 20, 6 << 20))
		skip("no FALLOC_FL_PUNCH_HOLE on this file system");
	OK(fsync(fd));
	SAY_IF(stat_fd(fd).st_blocks > before / 2, "of %jd blocks %jd are left", (intmax_t)before,
	       (intmax_t)stat_fd(fd).st_blocks);
	IS(lseek(fd, 0, SEEK_DATA), 0);
	TRUE(lseek(fd, 2 << 20, SEEK_DATA) <= 7 << 20);
	close(fd);
}

CASE(holes, fallocate_grows_only_when_told)
{
	int fd = open_new("f");

	write_pattern(fd, 0, 1000, 1);
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000) != 0 && errno == EOPNOTSUPP)
		skip("no fallocate on this file system");
	IS(stat_fd(fd).st_size, 1000);
	OK(fallocate(fd, 0, 500, 1000));
	IS(stat_fd(fd).st_size, 1500);
	OK(fallocate(fd, 0, 0, 100));
	IS(stat_fd(fd).st_size, 1500);
	OK(fallocate(fd, 0, 100000, 200000));
	IS(stat_fd(fd).st_size, 300000);
	PATTERN_AT(fd, 0, 1000, 1);
	ZEROS_AT(fd, 1000, 299000);
	OK(posix_fallocate(fd, 300000, 100) ? -1 : 0);
	IS(stat_fd(fd).st_size, 300100);
	NEED(ftruncate(fd, 0));
	NEED(ftruncate(fd, 1000));
	ZEROS_AT(fd, 0, 1000);
	close(fd);
}

static blkcnt_t sectors(off_t bytes)
{
	return (blkcnt_t)(bytes / 512);
}

CASE(holes, fallocate_takes_blocks_until_they_are_punched)
{
	int fd = open_new("f");

	if (fallocate(fd, 0, 0, 4 << 20) != 0 && errno == EOPNOTSUPP)
		skip("no fallocate on this file system");
	TRUE(stat_fd(fd).st_blocks >= sectors(4 << 20));
	OK(fsync(fd));
	TRUE(stat_fd(fd).st_blocks >= sectors(4 << 20));
	ZEROS_AT(fd, 0, 4 << 20);
	write_pattern(fd, 1 << 20, 1 << 20, 1);
	TRUE(stat_fd(fd).st_blocks >= sectors(4 << 20));
	TRUE(stat_fd(fd).st_blocks < sectors(6 << 20));
	PATTERN_AT(fd, 1 << 20, 1 << 20, 1);
	ZEROS_AT(fd, 2 << 20, 2 << 20);
	if (!punch(fd, 2 << 20, 2 << 20))
		return;
	TRUE(stat_fd(fd).st_blocks < sectors(3 << 20));
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 2 << 20, 1 << 20)); /* within the size */
	TRUE(stat_fd(fd).st_blocks >= sectors(3 << 20));
	IS(stat_fd(fd).st_size, 4 << 20);
	close(fd);
}

CASE(holes, zero_range_zeros)
{
	int fd = open_new("f");

	write_pattern(fd, 0, 200000, 1);
	if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 1000, 100000) != 0 && errno == EOPNOTSUPP)
		skip("no FALLOC_FL_ZERO_RANGE on this file system");
	IS(stat_fd(fd).st_size, 200000);
	PATTERN_AT(fd, 0, 1000, 1);
	ZEROS_AT(fd, 1000, 100000);
	PATTERN_AT(fd, 101000, 99000, 1);
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 150000, 100000));
	IS(stat_fd(fd).st_size, 200000);
	ZEROS_AT(fd, 150000, 50000);
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 190000, 60000));
	IS(stat_fd(fd).st_size, 250000);
	ZEROS_AT(fd, 150000, 100000);
	PATTERN_AT(fd, 101000, 49000, 1);
	close(fd);
}

CASE(holes, fallocate_refuses_what_it_should)
{
	int fd = open_new("f"), ro, pipes[2];

	if (fallocate(fd, 0, 0, 1) != 0 && errno == EOPNOTSUPP)
		skip("no fallocate on this file system");
	FAILS(fallocate(fd, 0, 0, 0), EINVAL);
	FAILS(fallocate(fd, 0, -1, 10), EINVAL);
	FAILS(fallocate(fd, 0, 10, -1), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1), EOPNOTSUPP, EINVAL);
	FAILS(fallocate(fd, 0x4000000, 0, 1), EOPNOTSUPP, EINVAL);
	FAILS(fallocate(fd, 0, INT64_MAX - 10, 100), EFBIG);
	ro = (int)NEED(open("f", O_RDONLY | O_CLOEXEC));
	FAILS(fallocate(ro, 0, 0, 10), EBADF);
	close(ro);
	NEED(pipe2(pipes, O_CLOEXEC));
	FAILS(fallocate(pipes[1], 0, 0, 10), ESPIPE, ENODEV);
	IS(stat_fd(fd).st_size, 1);
	close(fd);
}

CASE(holes, fallocate_of_more_than_there_is_fails)
{
	struct statvfs v;
	int fd = open_new("f");

	NEED(statvfs(".", &v));
	if (fallocate(fd, 0, 0, 1) != 0 && errno == EOPNOTSUPP)
		skip("no fallocate on this file system");
	FAILS(fallocate(fd, 0, 0, (off_t)((v.f_bavail + v.f_bfree / 2) * v.f_frsize) + (8ll << 30)),
	      ENOSPC, EFBIG);
	close(fd);
}

CASE(holes, collapse_and_insert_move_or_refuse)
{
	int fd = open_new("f");

	write_pattern(fd, 0, 300000, 1);
	if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 65536, 65536) != 0) {
		FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 65536, 65536), EOPNOTSUPP);
		FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 65536, 65536), EOPNOTSUPP);
		PATTERN_AT(fd, 0, 300000, 1);
		IS(stat_fd(fd).st_size, 300000);
	} else {
		IS(stat_fd(fd).st_size, 300000 - 65536);
		PATTERN_AT(fd, 0, 65536, 1);
	}
	close(fd);
}

CASE(holes, a_file_of_one_tebibyte)
{
	static const uint64_t at[] = { 0, 1ull << 30, (1ull << 40) / 3, (1ull << 40) - 5000 };
	double t = now_s();
	off_t data;
	size_t i;
	int fd = open_new("f");

	NEED(ftruncate(fd, (off_t)1 << 40));
	for (i = 0; i < ARRAY_LEN(at); i++)
		write_pattern(fd, at[i], 5000, 1);
	IS(stat_fd(fd).st_size, (off_t)1 << 40);
	TRUE(stat_fd(fd).st_blocks < 20000);
	OK(fsync(fd));
	for (i = 0; i < ARRAY_LEN(at); i++) {
		PATTERN_AT(fd, at[i], 5000, 1);
		covered(fd, (off_t)at[i], 5000);
	}
	ZEROS_AT(fd, 1ull << 39, 100000);
	data = OK(lseek(fd, 2ll << 30, SEEK_DATA));
	TRUE(data <= (off_t)at[2]);
	if (punch(fd, 1000, ((off_t)1 << 40) - 2000)) {
		PATTERN_AT(fd, 0, 1000, 1);
		ZEROS_AT(fd, at[2], 5000);
		PATTERN_AT(fd, (1ull << 40) - 1000, 1000, 1);
	}
	OK(ftruncate(fd, 10));
	PATTERN_AT(fd, 0, 10, 1);
	OK(ftruncate(fd, (off_t)1 << 40));
	ZEROS_AT(fd, 10, 10000);
	close(fd);
	OK(unlink("f"));
	note("1 TiB in %.2f s", now_s() - t);
}

CASE(holes, writing_at_the_largest_offset_fails_cleanly)
{
	int fd = open_new("f");

	FAILS(pwrite(fd, "xx", 2, INT64_MAX - 1), EFBIG, EINVAL);
	FAILS(lseek(fd, INT64_MAX, SEEK_DATA), ENXIO, EINVAL);
	IS(stat_fd(fd).st_size, 0);
	close(fd);
}
