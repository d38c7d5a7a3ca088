#include "tests/lib/test.h"

#include <errno.h>

#include "base/size.h"

#define KIB 1024ULL

TEST(sizes_are_read_in_powers_of_1024)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "12B", 12 },
		{ "1K", KIB },
		{ "512M", 512 * KIB * KIB },
		{ "2G", 2 * KIB * KIB * KIB },
		{ "2g", 2 * KIB * KIB * KIB },
		{ "3TiB", 3 * KIB * KIB * KIB * KIB },
		{ "1P", KIB * KIB * KIB * KIB * KIB },
		{ "15E", 15 * KIB * KIB * KIB * KIB * KIB * KIB },
		{ "18446744073709551615", UINT64_MAX },
		{ "007", 7 },
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		v = 99;
		CHECK_EQ(size_parse(rows[i].text, &v), 0);
		CHECK_EQ(v, rows[i].want);
	}
}

TEST(what_is_no_size_is_refused)
{
	static const char *const bad[] = { "",
					   "M",
					   "-1",
					   "+1",
					   " 1",
					   "1 ",
					   "1 M",
					   "1.5G",
					   "1MB",
					   "1MiX",
					   "1MM",
					   "0x1",
					   "1Z",
					   "1i",
					   "1iB",
					   "1K1",
					   "1-",
					   "1\x0d",
					   "99999999999999999999x" };
	uint64_t v = 99;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(size_parse(bad[i], &v), -EINVAL);
	CHECK_EQ(v, 99);
}

TEST(a_limit_of_a_few_bytes_says_its_unit)
{
	uint64_t v = 99;

	CHECK_EQ(size_parse_limit("5", &v), -EDOM);
	CHECK_EQ(size_parse_limit("1023", &v), -EDOM);
	CHECK_EQ(size_parse_limit("5x", &v), -EINVAL);
	CHECK_EQ(v, 99);
	CHECK_EQ(size_parse_limit("5B", &v), 0);
	CHECK_EQ(v, 5);
	CHECK_EQ(size_parse_limit("1024", &v), 0);
	CHECK_EQ(v, 1024);
	CHECK_EQ(size_parse_limit("0", &v), 0);
	CHECK_EQ(v, 0);
}

TEST(a_size_that_does_not_fit_is_out_of_range)
{
	static const char *const big[] = { "18446744073709551616", "16E", "99999999999999999999M",
					   "18014398509481984K", "184467440737095516150" };
	uint64_t v = 99;
	size_t i;

	for (i = 0; i < ARRAY_LEN(big); i++)
		CHECK_EQ(size_parse(big[i], &v), -ERANGE);
	CHECK_EQ(v, 99);
}

TEST(a_plain_number_takes_no_unit)
{
	uint64_t v = 99;

	CHECK_EQ(size_parse_u64("10K", &v), -EINVAL);
	CHECK_EQ(size_parse_u64("", &v), -EINVAL);
	CHECK_EQ(size_parse_u64("-1", &v), -EINVAL);
	CHECK_EQ(size_parse_u64("18446744073709551616", &v), -ERANGE);
	CHECK_EQ(v, 99);
	CHECK_EQ(size_parse_u64("10", &v), 0);
	CHECK_EQ(v, 10);
}

TEST(durations_are_read_in_milliseconds)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{ "0", 0 },
		{ "500ms", 500 },
		{ "30s", 30000 },
		{ "15m", 900000 },
		{ "2h", 7200000 },
		{ "7d", 604800000 },
		{ "1w", 604800000 },
		{ "2w1d", 1296000000 },
		{ "1h30m", 5400000 },
		{ "1m2s3ms", 62003 },
		{ "0s", 0 },
		{ "90m", 5400000 },
		{ "18446744073709551615ms", UINT64_MAX },
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		v = 99;
		CHECK_EQ(duration_parse(rows[i].text, &v), 0);
		CHECK_EQ(v, rows[i].want);
	}
}

TEST(what_is_no_duration_is_refused)
{
	static const char *const bad[] = { "",     "30",   "s",      "-1s",   "1 s",
					   "1.5h", "1x",   "1S",     "1sm",   "30m1h",
					   "1s1s", "1h30", "1h 30m", "1ms1s", "1d1w" };
	uint64_t v = 99;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(duration_parse(bad[i], &v), -EINVAL);
	CHECK_EQ(v, 99);
}

TEST(a_duration_that_does_not_fit_is_out_of_range)
{
	static const char *const big[] = { "18446744073709551616ms", "18446744073709552s",
					   "213503982335d", "18446744073709551s616ms",
					   "18446744073709551616s1ms" };
	uint64_t v = 99;
	size_t i;

	for (i = 0; i < ARRAY_LEN(big); i++)
		CHECK_EQ(duration_parse(big[i], &v), -ERANGE);
	CHECK_EQ(v, 99);
}

TEST(sizes_are_shown_with_one_decimal)
{
	char out[SIZE_TEXT_MAX];

	CHECK_STR(size_format(0, out), "0 B");
	CHECK_STR(size_format(1023, out), "1023 B");
	CHECK_STR(size_format(1024, out), "1.0 KiB");
	CHECK_STR(size_format(1536 * KIB, out), "1.5 MiB");
	CHECK_STR(size_format(10 * KIB * KIB * KIB, out), "10.0 GiB");
	CHECK_STR(size_format(1023 * KIB + 1000, out), "1.0 MiB");
	CHECK_STR(size_format(1023 * KIB + 900, out), "1023.9 KiB");
	CHECK_STR(size_format(UINT64_MAX, out), "16.0 EiB");
}

TEST(durations_are_shown_in_the_two_largest_units)
{
	char out[DURATION_TEXT_MAX];

	CHECK_STR(duration_format(0, out), "0ms");
	CHECK_STR(duration_format(999, out), "999ms");
	CHECK_STR(duration_format(1000, out), "1s");
	CHECK_STR(duration_format(1500, out), "1.5s");
	CHECK_STR(duration_format(59999, out), "59.9s");
	CHECK_STR(duration_format(60000, out), "1m");
	CHECK_STR(duration_format(125000, out), "2m 5s");
	CHECK_STR(duration_format(5400000, out), "1h 30m");
	CHECK_STR(duration_format(3600000, out), "1h");
	CHECK_STR(duration_format(612000000, out), "7d 2h");
	CHECK_STR(duration_format(UINT64_MAX, out), "213503982334d 14h");
}

TEST_MAIN("size")
