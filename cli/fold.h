/*
 * fold.h - rows of a table that are longer than the terminal is wide.
 *
 * What is printed to `to.out` comes out in fold_end(), broken between words: the rest of a row goes
 * on below its last column or, where that leaves too little room, near the left edge.  A word that is
 * longer than a line stays whole, so that a path can be copied.  Without a terminal nothing changes.
 */
#pragma once

#include "cli/cmd.h"

struct fold {
	struct invocation to; /* the command's, with an `out` of its own; borrowed but for that */
	FILE *out;            /* where the rows go in the end; NULL: there already */
	size_t columns, last, indent;
	char *text; /* owned */
	size_t len;
};

/* `columns` of the terminal, 0: there is none; the last column of the table begins behind `last`. */
void fold_begin(struct fold *f, const struct invocation *inv, size_t columns, size_t last);
void fold_end(struct fold *f);
