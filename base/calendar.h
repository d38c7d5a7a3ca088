/*
 * calendar.h - recurring times, such as "Mon..Fri 03:00 Europe/Berlin".
 *
 * An expression is [WEEKDAYS] [DATE] TIME [ZONE], much as systemd.time(7) has it, or one of the words hourly, daily,
 * weekly, monthly and perhaps a ZONE.  WEEKDAYS is Mon,Wed or Mon..Fri; DATE is YEAR-MONTH-DAY or MONTH-DAY;
 * TIME is HOUR:MINUTE.  Each number may be '*', a list 1,15, a range 9..17, and have a step: 0/15, 9..17/2.
 * Without a ZONE the machine's own counts.
 *
 * A local time that the clock skips comes as much later as the clock was set forward; one that it shows twice comes
 * the first time only.  An expression for every hour goes by the hours that there really are.
 *
 * These functions set the time zone of the process for a moment: call from a process with one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

#define CALENDAR_ZONE_MAX 64

struct calendar {
	uint64_t minutes;
	uint32_t hours, days, months; /* bit n: the number n */
	uint64_t years[2];            /* bit n: 2000 + n */
	uint32_t weekdays;            /* bit 0: Sunday */
	char zone[CALENDAR_ZONE_MAX]; /* "": the machine's */
};

/* -EINVAL with a sentence that says which part is wrong. */
NODISCARD int calendar_parse(const char *text, struct calendar *ret, struct err *err);

/* The first moment after `after`, both in seconds since 1970.  -ENOENT: none is left before 2128. */
NODISCARD int calendar_next(const struct calendar *c, int64_t after, int64_t *ret);

/* Hours of the day from one minute to another, which may be tomorrow's: "22:00-06:30", perhaps with a ZONE. */
struct day_span {
	unsigned from, to; /* minutes since midnight */
	char zone[CALENDAR_ZONE_MAX];
};

NODISCARD int day_span_parse(const char *text, struct day_span *ret, struct err *err);

/* Is the moment in it?  Then *ret_end (may be NULL) is when it ends. */
bool day_span_holds(const struct day_span *s, int64_t now, int64_t *ret_end);
