#include "base/calendar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define YEAR_FIRST 2000
#define YEAR_LAST  2127
#define DAY_S      86400
#define ALL_HOURS  0xffffffU /* bits 0 to 23 */

static const char *const weekday_names[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* --- zones --------------------------------------------------------------------------------- */

/* The zone of the process, put back at the end of the scope. */
struct zone_scope {
	char *was; /* owned; NULL: none was set */
	bool set;
};

static void zone_leave(struct zone_scope *z)
{
	if (!z->set)
		return;
	if (z->was)
		setenv("TZ", z->was, 1);
	else
		unsetenv("TZ");
	tzset();
	free(z->was);
}

static void zone_enter(struct zone_scope *z, const char *zone)
{
	const char *was = getenv("TZ");

	if (*zone == '\0') {
		tzset();
		return;
	}
	z->was = was ? strdup(was) : NULL;
	z->set = true;
	setenv("TZ", zone, 1);
	tzset();
}

/* A zone that the C library does not know would count as UTC, without a word. */
static bool is_zone(const char *name)
{
	const char *dir = getenv("TZDIR");
	char path[256];
	struct stat st;

	if (strcmp(name, "UTC") == 0)
		return true;
	if (*name == '\0' || *name == '/' || *name == '.' || strstr(name, "..") ||
	    strlen(name) >= CALENDAR_ZONE_MAX)
		return false;
	snprintf(path, sizeof(path), "%.150s/%s", dir ? dir : "/usr/share/zoneinfo", name);
	return access(path, R_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int take_zone(const char *text, char ret[CALENDAR_ZONE_MAX], struct err *err)
{
	if (!is_zone(text))
		return err_set(err, -EINVAL, "'%.60s' is no time zone that this machine knows",
			       text);
	snprintf(ret, CALENDAR_ZONE_MAX, "%s", text);
	return 0;
}

/* --- numbers ------------------------------------------------------------------------------- */

/* Up to 128 numbers from `first` on. */
struct set {
	unsigned first, last;
	uint64_t bits[2]; /* bit n: first + n */
};

static void set_add(struct set *s, unsigned value)
{
	s->bits[(value - s->first) / 64] |= (uint64_t)1 << (value - s->first) % 64;
}

static bool take_number(const char **at, const struct set *s, unsigned *ret)
{
	unsigned v = 0, digits = 0;

	for (; **at >= '0' && **at <= '9' && digits < 5; (*at)++, digits++)
		v = v * 10 + (unsigned)(**at - '0');
	*ret = v;
	return digits > 0 && v >= s->first && v <= s->last;
}

/* "*", "5", "1..7", each perhaps with "/2". */
static bool take_item(const char **at, struct set *s)
{
	const struct set step_of = { .first = 1, .last = 9999 };
	unsigned from = s->first, to = s->last, step = 1;

	if (**at == '*') {
		(*at)++;
	} else {
		if (!take_number(at, s, &from))
			return false;
		to = **at == '/' ? s->last : from;
		if (strncmp(*at, "..", 2) == 0) {
			*at += 2;
			if (!take_number(at, s, &to) || to < from)
				return false;
		}
	}
	if (**at == '/') {
		(*at)++;
		if (!take_number(at, &step_of, &step))
			return false;
	}
	for (unsigned v = from; v <= to; v += step)
		set_add(s, v);
	return true;
}

/* Items with commas between them, up to `end`. */
static bool take_set(const char **at, char end, struct set *s)
{
	for (;;) {
		if (!take_item(at, s))
			return false;
		if (**at != ',')
			return **at == end;
		(*at)++;
	}
}

/* --- parts --------------------------------------------------------------------------------- */

static bool take_weekday(const char **at, unsigned *ret)
{
	for (unsigned i = 0; i < ARRAY_LEN(weekday_names); i++)
		if (strncasecmp(*at, weekday_names[i], 3) == 0) {
			*at += 3;
			*ret = i;
			return true;
		}
	return false;
}

/* 0: it names no weekday at all; -EINVAL: it begins like one. */
static int take_weekdays(const char *text, uint32_t *ret)
{
	uint32_t days = 0;
	unsigned from, to;

	if (!take_weekday(&text, &from))
		return 0;
	for (;;) {
		to = from;
		if (strncmp(text, "..", 2) == 0) {
			text += 2;
			if (!take_weekday(&text, &to))
				return -EINVAL;
		}
		/* Fri..Mon goes over the end of the week. */
		for (unsigned d = from;; d = (d + 1) % 7) {
			days |= 1U << d;
			if (d == to)
				break;
		}
		if (*text == '\0') {
			*ret = days;
			return 1;
		}
		if (*text++ != ',' || !take_weekday(&text, &from))
			return -EINVAL;
	}
}

static bool take_date(const char *text, struct calendar *c)
{
	struct set years = { .first = YEAR_FIRST, .last = YEAR_LAST };
	struct set months = { .first = 1, .last = 12 }, days = { .first = 1, .last = 31 };
	const char *second = strchr(text, '-');

	if (second && strchr(second + 1, '-')) {
		if (!take_set(&text, '-', &years))
			return false;
		text++;
		memcpy(c->years, years.bits, sizeof(c->years));
	}
	if (!take_set(&text, '-', &months))
		return false;
	text++;
	if (!take_set(&text, '\0', &days))
		return false;
	c->months = (uint32_t)months.bits[0] << 1;
	c->days = (uint32_t)days.bits[0] << 1;
	return true;
}

static bool take_time(const char *text, struct calendar *c)
{
	struct set hours = { .first = 0, .last = 23 }, minutes = { .first = 0, .last = 59 };

	if (!take_set(&text, ':', &hours))
		return false;
	text++;
	if (!take_set(&text, '\0', &minutes))
		return false;
	c->hours = (uint32_t)hours.bits[0];
	c->minutes = minutes.bits[0];
	return true;
}

/* --- expressions --------------------------------------------------------------------------- */

static const struct {
	const char *word, *date, *time;
	uint32_t weekdays;
} shorthands[] = {
	{ "hourly", "*-*", "*:00", 0x7f },
	{ "daily", "*-*", "00:00", 0x7f },
	{ "weekly", "*-*", "00:00", 0x02 },
	{ "monthly", "*-1", "00:00", 0x7f },
};

static bool take_shorthand(const char *word, struct calendar *c)
{
	for (size_t i = 0; i < ARRAY_LEN(shorthands); i++)
		if (strcmp(word, shorthands[i].word) == 0) {
			c->weekdays = shorthands[i].weekdays;
			return take_date(shorthands[i].date, c) && take_time(shorthands[i].time, c);
		}
	return false;
}

static int parse_words(char *words, struct calendar *c, struct err *err)
{
	char *rest = NULL, *word = strtok_r(words, " \t", &rest);
	int r = word ? take_weekdays(word, &c->weekdays) : 0;

	if (word && take_shorthand(word, c)) {
		word = strtok_r(NULL, " \t", &rest);
		return word ? take_zone(word, c->zone, err) : 0;
	}
	if (r < 0)
		return err_set(err, r, "'%.60s' names no weekdays as Mon,Wed or Mon..Fri", word);
	if (r > 0)
		word = strtok_r(NULL, " \t", &rest);
	if (word && !strchr(word, ':') && strchr(word, '-')) {
		if (!take_date(word, c))
			return err_set(err, -EINVAL,
				       "'%.60s' is no date as *-*-1, 2030-1-15 or 1..6-*", word);
		word = strtok_r(NULL, " \t", &rest);
	}
	if (!word || !take_time(word, c))
		return err_set(err, -EINVAL, "'%.60s' is no time as 03:00, *:00 or 9..17:0/15",
			       word ? word : "");
	word = strtok_r(NULL, " \t", &rest);
	r = word ? take_zone(word, c->zone, err) : 0;
	word = r >= 0 && word ? strtok_r(NULL, " \t", &rest) : NULL;
	return word ? err_set(err, -EINVAL, "'%.60s' has nothing to say behind the time zone", word)
		    : r;
}

int calendar_parse(const char *text, struct calendar *ret, struct err *err)
{
	struct calendar c = { .weekdays = 0x7f, .days = UINT32_MAX, .months = UINT32_MAX };
	AUTO_FREE char *words = strdup(text);
	int r;

	if (!words)
		return err_nomem(err);
	memset(c.years, 0xff, sizeof(c.years));
	r = parse_words(words, &c, err);
	if (r >= 0)
		*ret = c;
	return r;
}

/* --- the next moment ----------------------------------------------------------------------- */

/* The moment at which the zone shows these, with or without summer time; false: it never does so. */
static bool moment_of(const struct tm *local, int summer, time_t *ret)
{
	struct tm tm = *local, back;

	tm.tm_isdst = summer;
	*ret = mktime(&tm);
	return localtime_r(ret, &back) && back.tm_mday == local->tm_mday &&
	       back.tm_hour == local->tm_hour && back.tm_min == local->tm_min;
}

/* The first moment after `after` at which it is due by this local time; false: it is not. */
static bool due_moment(const struct calendar *c, const struct tm *local, int64_t after,
		       int64_t *ret)
{
	const bool every_hour = (c->hours & ALL_HOURS) == ALL_HOURS;
	time_t t[2];
	const bool summer = moment_of(local, 1, &t[0]), winter = moment_of(local, 0, &t[1]);

	if (!summer && !winter) {
		/* Skipped: by the time before the jump it is that much later. */
		*ret = t[1];
		return !every_hour && t[1] > after;
	}
	if (summer && (t[0] > after || (winter && !every_hour))) {
		*ret = t[0];
		return t[0] > after;
	}
	*ret = t[1];
	return winter && t[1] > after;
}

static bool day_fits(const struct calendar *c, const struct tm *day)
{
	const int year = day->tm_year + 1900;

	return year >= YEAR_FIRST && year <= YEAR_LAST &&
	       (c->years[(year - YEAR_FIRST) / 64] >> (year - YEAR_FIRST) % 64 & 1) &&
	       (c->months >> (day->tm_mon + 1) & 1) && (c->days >> day->tm_mday & 1) &&
	       (c->weekdays >> day->tm_wday & 1);
}

static bool first_of_day(const struct calendar *c, const struct tm *day, int64_t after,
			 int64_t *ret)
{
	bool found = false;
	int64_t at;

	for (int minute = 0; minute < 24 * 60; minute++) {
		struct tm local = *day;

		if (!(c->hours >> minute / 60 & 1) || !(c->minutes >> minute % 60 & 1))
			continue;
		local.tm_hour = minute / 60;
		local.tm_min = minute % 60;
		local.tm_sec = 0;
		if (!due_moment(c, &local, after, &at) || (found && at >= *ret))
			continue;
		*ret = at;
		found = true;
	}
	return found;
}

int calendar_next(const struct calendar *c, int64_t after, int64_t *ret)
{
	CLEANUP(zone_leave) struct zone_scope zone = { 0 };
	time_t noon, start = (time_t)after;
	struct tm day;

	zone_enter(&zone, c->zone);
	if (!localtime_r(&start, &day))
		return -ENOENT;
	/* Yesterday, too: a time that is skipped may be due after midnight.  Days are counted in UTC, where all are equally long. */
	day.tm_hour = 12;
	day.tm_min = day.tm_sec = 0;
	noon = timegm(&day) - DAY_S;
	for (;; noon += DAY_S) {
		gmtime_r(&noon, &day);
		if (day.tm_year + 1900 > YEAR_LAST)
			return -ENOENT;
		if (day_fits(c, &day) && first_of_day(c, &day, after, ret))
			return 0;
	}
}

/* --- hours of the day ---------------------------------------------------------------------- */

static bool take_clock(const char **at, unsigned *ret)
{
	const struct set hours = { .first = 0, .last = 24 }, minutes = { .first = 0, .last = 59 };
	unsigned h, m;

	if (!take_number(at, &hours, &h) || *(*at)++ != ':' || !take_number(at, &minutes, &m))
		return false;
	*ret = h * 60 + m;
	return *ret <= 24 * 60;
}

int day_span_parse(const char *text, struct day_span *ret, struct err *err)
{
	struct day_span s = { 0 };
	const char *at = text;
	int r = 0;

	if (!take_clock(&at, &s.from) || *at++ != '-' || !take_clock(&at, &s.to) ||
	    s.from == s.to || (*at != '\0' && *at != ' '))
		return err_set(err, -EINVAL, "'%.60s' is no part of a day as 22:00-06:30", text);
	if (*at == ' ')
		r = take_zone(at + 1, s.zone, err);
	if (r >= 0)
		*ret = s;
	return r;
}

bool day_span_holds(const struct day_span *s, int64_t now, int64_t *ret_end)
{
	CLEANUP(zone_leave) struct zone_scope zone = { 0 };
	time_t t = (time_t)now;
	struct tm tm, end;
	unsigned minute;

	zone_enter(&zone, s->zone);
	if (!localtime_r(&t, &tm))
		return false;
	minute = (unsigned)(tm.tm_hour * 60 + tm.tm_min);
	if (s->from < s->to ? minute < s->from || minute >= s->to
			    : minute < s->from && minute >= s->to)
		return false;
	if (!ret_end)
		return true;
	if (minute >= s->to)
		tm.tm_mday++;
	tm.tm_hour = (int)(s->to / 60);
	tm.tm_min = (int)(s->to % 60);
	tm.tm_sec = 0;
	/* A time that the clock shows twice ends with the first one to come. */
	end = tm;
	*ret_end = mktime(&end);
	if (*ret_end <= now || (unsigned)(end.tm_hour * 60 + end.tm_min) != s->to % (24 * 60)) {
		tm.tm_isdst = -1;
		*ret_end = mktime(&tm);
	}
	if (*ret_end <= now)
		*ret_end = now + 60;
	return true;
}
