/*
 * lines-i.h - compare two texts with few differences by lines.
 *
 * Most changes are small, and finding a small difference takes less time than loading libgit2
 * (docs/design/diff.md). Texts that are too different or too long are left to libgit2.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Lines that take the place of others; either number may be 0. */
struct lines_block {
	size_t a, n_a; /* where it begins in the old text, and how many lines go */
	size_t b, n_b; /* the same of the new one, and how many come */
};

struct line {
	const char *text; /* borrowed */
	size_t len;       /* with its newline, which only the last may lack */
	uint32_t hash;
};

struct lines {
	struct line *a, *b; /* owned */
	size_t n_a, n_b;
	struct lines_block
	    *blocks; /* owned; in order, with at least one line between two of them */
	size_t n;
};

void lines_done(struct lines *l);

/* 1, or 0 if they differ too much or are too long. */
NODISCARD int lines_compare(const struct buf *a, const struct buf *b, struct lines *ret,
			    struct err *err);
