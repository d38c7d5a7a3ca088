/*
 * subid.h - ranges of ids that an administrator gave a user: /etc/subuid and /etc/subgid.
 *
 * A line is NAME:FIRST:COUNT, where NAME is the user's name or number (subuid(5)).  Portable, and
 * touches nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBID_RANGES_MAX 4

struct subid_range {
	uint32_t first, count;
};

struct subid {
	struct subid_range list[SUBID_RANGES_MAX];
	size_t n;
	uint32_t total; /* ids in all of them */
};

/* The user's ranges in the order of the lines, up to `most` ids; `name` may be NULL. */
void subid_read(const char *text, const char *name, uid_t uid, uint32_t most, struct subid *ret);

/* The first id, not before `from`, where so many ids are in nobody's range; 0: there are no such ids, or no memory. */
uint32_t subid_free(const char *text, uint32_t from, uint32_t count);
