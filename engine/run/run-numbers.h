/*
 * run-numbers.h - a list of inode numbers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* All zero: none. */
struct numbers {
	uint64_t *list; /* owned */
	size_t n, cap;
};

/* Behind the others; -ENOMEM. */
NODISCARD int numbers_add(struct numbers *n, uint64_t ino);

/* Rising, each once. */
void numbers_sort(struct numbers *n);

/* Add those, too, and sort; -ENOMEM. */
NODISCARD int numbers_join(struct numbers *n, const struct numbers *more);

/* `n` must be sorted. */
bool numbers_has(const struct numbers *n, uint64_t ino);
bool numbers_have(const struct numbers *n, const struct numbers *these);
