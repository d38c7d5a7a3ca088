/*
 * merge-show.h - show a conflict of texts to a person: three versions, markers, places.
 */
#pragma once

#include "base/buf.h"
#include "cowfs/store/store.h"
#include "snapshot/merge/merge.h"

#define MERGE_SIDES 3 /* base, ours, theirs */

struct merge_hunk {
	size_t line;                  /* of `marked`, where its first marker stands; from 1 */
	struct buf text[MERGE_SIDES]; /* what each has there; owned */
};

struct merge_shown {
	struct buf text[MERGE_SIDES]; /* owned; whole */
	bool has[MERGE_SIDES];        /* that side has the file */
	struct buf marked; /* owned; merged, with markers in the style diff3; empty: no hunks */
	struct merge_hunk *hunks; /* owned */
	size_t n_hunks, cap_hunks;
};

void merge_shown_done(struct merge_shown *s);

/* 1; or 0 if one of the three is no text, or has more than `max` bytes. */
NODISCARD int merge_show(struct store *s, const struct merge_conflict *c,
			 const struct merge_options *options, size_t max, struct merge_shown *ret,
			 struct err *err);
