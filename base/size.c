#include "base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SECOND_MS 1000ULL
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)
#define WEEK_MS   (7 * DAY_MS)

static const char size_units[] = "KMGTPE";

/* Digits from *text on, which then points behind them.  All are read even if they do not fit. */
static int take_digits(const char **text, uint64_t *ret)
{
	const char *p = *text;
	bool fits = true;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			fits = false;
	*text = p;
	*ret = v;
	return fits ? 0 : -ERANGE;
}

int size_parse_u64(const char *text, uint64_t *ret)
{
	uint64_t v = 0;
	int r = take_digits(&text, &v);

	if (r == -EINVAL || *text != '\0')
		return -EINVAL;
	if (r < 0)
		return r;
	*ret = v;
	return 0;
}

int size_parse(const char *text, uint64_t *ret)
{
	const char *unit;
	uint64_t v = 0;
	int r = take_digits(&text, &v), shift = 0;

	if (r == -EINVAL)
		return r;
	if (*text != '\0' && strcasecmp(text, "B") != 0) {
		unit = strchr(size_units, *text & ~0x20);
		if (!unit || *unit == '\0')
			return -EINVAL;
		if (text[1] != '\0' && strcasecmp(text + 1, "iB") != 0)
			return -EINVAL;
		shift = 10 * (int)(unit - size_units + 1);
	}
	if (r < 0 || v > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = v << shift;
	return 0;
}

int size_parse_limit(const char *text, uint64_t *ret)
{
	uint64_t v = 0;

	if (size_parse_u64(text, &v) == 0 && v > 0 && v < 1024)
		return -EDOM;
	return size_parse(text, ret);
}

static const struct duration_unit {
	const char *name;
	uint64_t ms;
} duration_units[] = {
	{ "w", WEEK_MS },   { "d", DAY_MS },    { "h", HOUR_MS },
	{ "m", MINUTE_MS }, { "s", SECOND_MS }, { "ms", 1 },
};

/* The unit that `text` starts with, and its length; NULL if there is none. */
static const struct duration_unit *unit_at(const char *text, size_t *ret_len)
{
	size_t len = strcspn(text, "0123456789"), i;

	for (i = 0; i < ARRAY_LEN(duration_units); i++) {
		if (strlen(duration_units[i].name) != len ||
		    strncmp(duration_units[i].name, text, len) != 0)
			continue;
		*ret_len = len;
		return &duration_units[i];
	}
	return NULL;
}

int duration_parse(const char *text, uint64_t *ret)
{
	const struct duration_unit *unit, *last = NULL;
	uint64_t total = 0, v = 0;
	bool fits = true;
	size_t len = 0;
	int r;

	if (strcmp(text, "0") == 0) {
		*ret = 0;
		return 0;
	}
	do {
		r = take_digits(&text, &v);
		if (r == -EINVAL)
			return r;
		unit = unit_at(text, &len);
		if (!unit || (last && unit <= last))
			return -EINVAL;
		if (r < 0 || __builtin_mul_overflow(v, unit->ms, &v) ||
		    __builtin_add_overflow(total, v, &total))
			fits = false;
		last = unit;
		text += len;
	} while (*text != '\0');
	if (!fits)
		return -ERANGE;
	*ret = total;
	return 0;
}

char *size_format(uint64_t bytes, char out[SIZE_TEXT_MAX])
{
	uint64_t whole, tenths;
	int unit = -1, shift;

	if (bytes < 1024) {
		snprintf(out, SIZE_TEXT_MAX, "%u B", (unsigned)bytes);
		return out;
	}
	do {
		unit++;
		shift = 10 * (unit + 1);
		whole = bytes >> shift;
		tenths = ((bytes >> (shift - 10) & 1023) * 10 + 512) >> 10;
		if (tenths == 10) {
			whole++;
			tenths = 0;
		}
	} while (whole >= 1024);
	snprintf(out, SIZE_TEXT_MAX, "%u.%u %ciB", (unsigned)whole, (unsigned)tenths,
		 size_units[unit]);
	return out;
}

char *duration_format(uint64_t ms, char out[DURATION_TEXT_MAX])
{
	const struct duration_unit *u = duration_units + 1; /* weeks are read, and not shown */
	uint64_t rest;

	if (ms < SECOND_MS) {
		snprintf(out, DURATION_TEXT_MAX, "%ums", (unsigned)ms);
		return out;
	}
	if (ms < MINUTE_MS) {
		rest = ms % SECOND_MS / 100;
		if (rest > 0)
			snprintf(out, DURATION_TEXT_MAX, "%u.%us", (unsigned)(ms / SECOND_MS),
				 (unsigned)rest);
		else
			snprintf(out, DURATION_TEXT_MAX, "%us", (unsigned)(ms / SECOND_MS));
		return out;
	}
	while (ms < u->ms)
		u++;
	rest = ms % u->ms / u[1].ms;
	if (rest > 0)
		snprintf(out, DURATION_TEXT_MAX, "%" PRIu64 "%s %u%s", ms / u->ms, u->name,
			 (unsigned)rest, u[1].name);
	else
		snprintf(out, DURATION_TEXT_MAX, "%" PRIu64 "%s", ms / u->ms, u->name);
	return out;
}
