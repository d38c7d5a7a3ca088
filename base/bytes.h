/*
 * bytes.h - a borrowed run of bytes.
 */
#pragma once

#include <stddef.h>
#include <string.h>

/* The order of runs: by their bytes as unsigned numbers, a run before those that it begins. */
static inline int bytes_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
	const size_t common = a_len < b_len ? a_len : b_len;
	const int order = common > 0 ? memcmp(a, b, common) : 0;

	return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}
