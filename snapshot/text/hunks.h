/*
 * hunks.h - which lines of a text come from an earlier one, as `git blame` matches them.
 *
 * The matching is libgit2's, with git's indent heuristic.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "cowfs/store/content.h"

/* Lines that take the place of others, counted from 0; either number may be 0. */
struct hunk {
	size_t a, n_a; /* of the earlier text */
	size_t b, n_b; /* of the later one */
};

struct hunks {
	struct hunk *list; /* owned; in order; every line outside of them is in both texts */
	size_t n, cap;
};

void hunks_done(struct hunks *h);

/* Replaces *ret.  -EIO or -ENOTSUP with a sentence if libgit2 fails or is not there. */
NODISCARD int hunks_find(const struct buf *a, const struct buf *b, struct hunks *ret,
			 struct err *err);

/* The content of a file that is to be matched; replaces `out`.  -EFBIG if it is too large. */
NODISCARD int hunks_load(struct store *s, const struct content *c, struct buf *out,
			 struct err *err);

/* How many lines it has; the last may lack its newline. */
size_t hunks_count_lines(const struct buf *text);
