#include "tests/lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/calendar.h"

/* Seconds since 1970 of "2030-01-15 03:00" in UTC. */
static int64_t at(const char *text)
{
	struct tm tm = { 0 };

	CHECK(strptime(text, "%Y-%m-%d %H:%M", &tm));
	return timegm(&tm);
}

static const char *text_of(int64_t when)
{
	static char text[32];
	const time_t t = (time_t)when;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
	return text;
}

static void check_next(const char *expression, const char *after, const char *want)
{
	struct calendar c;
	struct err err = { 0 };
	int64_t got = 0;

	CHECK_OK(calendar_parse(expression, &c, &err), &err);
	CHECK_EQ(calendar_next(&c, at(after), &got), 0);
	CHECK_STR(text_of(got), want);
}

TEST(an_expression_gives_the_next_moment_and_never_the_same_again)
{
	static const char *const rows[][3] = {
		{ "03:00 UTC", "2030-01-15 02:59", "2030-01-15 03:00" },
		{ "03:00 UTC", "2030-01-15 03:00", "2030-01-16 03:00" },
		{ "*:0/15 UTC", "2030-01-15 03:07", "2030-01-15 03:15" },
		{ "9..17/4:30 UTC", "2030-01-15 09:30", "2030-01-15 13:30" },
		{ "Mon..Fri 03:00 UTC", "2030-01-18 04:00", "2030-01-21 03:00" },
		{ "Fri..Mon 03:00 UTC", "2030-01-15 04:00", "2030-01-18 03:00" },
		{ "Sat,Wed 03:00 UTC", "2030-01-15 04:00", "2030-01-16 03:00" },
		{ "*-*-1,15 00:00 UTC", "2030-01-15 00:00", "2030-02-01 00:00" },
		{ "2-29 12:00 UTC", "2030-01-01 00:00", "2032-02-29 12:00" },
		{ "2031-1-1 12:00 UTC", "2030-01-01 00:00", "2031-01-01 12:00" },
		{ "hourly UTC", "2030-12-31 23:00", "2031-01-01 00:00" },
		{ "daily UTC", "2030-01-15 00:00", "2030-01-16 00:00" },
		{ "weekly UTC", "2030-01-15 00:00", "2030-01-21 00:00" },
		{ "monthly UTC", "2030-01-15 00:00", "2030-02-01 00:00" },
		{ "03:00 Asia/Kolkata", "2030-01-15 00:00", "2030-01-15 21:30" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_next(rows[i][0], rows[i][1], rows[i][2]);
}

/* Berlin: from 02:00 to 03:00 on 2030-03-31, and from 03:00 back to 02:00 on 2030-10-27, both at 01:00 UTC. */
TEST(a_time_that_the_clock_skips_comes_later_that_day)
{
	check_next("02:30 Europe/Berlin", "2030-03-30 12:00", "2030-03-31 01:30");
	check_next("02:30 Europe/Berlin", "2030-03-31 01:30", "2030-04-01 00:30");
	check_next("03:30 Europe/Berlin", "2030-03-31 00:00", "2030-03-31 01:30");
	/* Midnight itself is skipped there. */
	check_next("00:00 America/Havana", "2030-03-09 12:00", "2030-03-10 05:00");
}

TEST(a_time_that_the_clock_shows_twice_comes_once)
{
	check_next("02:30 Europe/Berlin", "2030-10-26 12:00", "2030-10-27 00:30");
	check_next("02:30 Europe/Berlin", "2030-10-27 00:30", "2030-10-28 01:30");
}

TEST(what_comes_every_hour_goes_by_the_hours_that_there_are)
{
	check_next("*:30 Europe/Berlin", "2030-10-27 00:30", "2030-10-27 01:30");
	check_next("*:30 Europe/Berlin", "2030-10-27 01:30", "2030-10-27 02:30");
	check_next("*:30 Europe/Berlin", "2030-03-31 00:30", "2030-03-31 01:30");
	check_next("*:30 Europe/Berlin", "2030-03-31 01:30", "2030-03-31 02:30");
}

TEST(a_moment_that_never_comes_is_none)
{
	struct calendar c;
	struct err err = { 0 };
	int64_t got;

	CHECK_OK(calendar_parse("2-30 12:00", &c, &err), &err);
	CHECK_EQ(calendar_next(&c, at("2030-01-01 00:00"), &got), -ENOENT);
	CHECK_OK(calendar_parse("2020-1-1 12:00", &c, &err), &err);
	CHECK_EQ(calendar_next(&c, at("2030-01-01 00:00"), &got), -ENOENT);
}

TEST(what_is_no_expression_is_refused_with_its_part)
{
	static const char *const rows[][2] = {
		{ "", "is no time" },
		{ "25:00", "'25:00' is no time" },
		{ "03:60", "is no time" },
		{ "03", "is no time" },
		{ "3:00 Nowhere/City", "'Nowhere/City' is no time zone" },
		{ "3:00 ../../etc/passwd", "is no time zone" },
		{ "3:00 Europe", "is no time zone" },
		{ "3:00 UTC more", "'more' has nothing to say" },
		{ "Mon..Foo 3:00", "names no weekdays" },
		{ "13-1 3:00", "'13-1' is no date" },
		{ "5..1:00", "is no time" },
		{ "0/0:00", "is no time" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct calendar c;
		struct err err = { 0 };

		CHECK_EQ(calendar_parse(rows[i][0], &c, &err), -EINVAL);
		CHECK(strstr(err.msg, rows[i][1]));
	}
}

TEST(hours_of_the_day_may_go_over_midnight_and_say_when_they_end)
{
	struct day_span s;
	struct err err = { 0 };
	int64_t end;

	CHECK_OK(day_span_parse("22:00-06:30 UTC", &s, &err), &err);
	CHECK(!day_span_holds(&s, at("2030-01-15 21:59"), NULL));
	CHECK(day_span_holds(&s, at("2030-01-15 22:00"), &end));
	CHECK_STR(text_of(end), "2030-01-16 06:30");
	CHECK(day_span_holds(&s, at("2030-01-16 06:29"), &end));
	CHECK_STR(text_of(end), "2030-01-16 06:30");
	CHECK(!day_span_holds(&s, at("2030-01-16 06:30"), NULL));
	CHECK_OK(day_span_parse("09:00-17:00 Europe/Berlin", &s, &err), &err);
	CHECK(day_span_holds(&s, at("2030-07-15 07:00"), NULL));
	CHECK(!day_span_holds(&s, at("2030-01-15 07:00"), NULL));
	/* The clock shows that hour twice: it is quiet both times, and no end is past. */
	CHECK_OK(day_span_parse("01:30-02:30 Europe/Berlin", &s, &err), &err);
	CHECK(day_span_holds(&s, at("2030-10-27 00:10"), &end));
	CHECK_STR(text_of(end), "2030-10-27 00:30");
	CHECK(!day_span_holds(&s, at("2030-10-27 00:40"), NULL));
	CHECK(day_span_holds(&s, at("2030-10-27 01:10"), &end));
	CHECK_STR(text_of(end), "2030-10-27 01:30");
	CHECK_EQ(day_span_parse("9-17", &s, &err), -EINVAL);
	CHECK_EQ(day_span_parse("09:00-09:00", &s, &err), -EINVAL);
	CHECK_EQ(day_span_parse("09:00-25:00", &s, &err), -EINVAL);
}

TEST(the_zone_of_the_process_is_as_before)
{
	struct calendar c;
	struct err err = { 0 };
	int64_t got;

	setenv("TZ", "Asia/Tokyo", 1);
	CHECK_OK(calendar_parse("03:00 Europe/Berlin", &c, &err), &err);
	CHECK_EQ(calendar_next(&c, at("2030-01-15 00:00"), &got), 0);
	CHECK_STR(getenv("TZ"), "Asia/Tokyo");
	check_next("03:00", "2030-01-15 00:00", "2030-01-15 18:00");
}

TEST_MAIN("calendar")
