/*
 * marks-i.h - private to the store: the rows that a gc, or a repair, leaves alone.
 *
 * There is a bit for each row up to the highest when the gc begins; younger rows stay anyway. The
 * sweep goes upwards and decides each row once: from then on a row without a mark is as good as
 * gone. store->lock guards the marks.
 */
#pragma once

#include "base/err.h"
#include "cowfs/store/row-i.h"

struct marks {
	int64_t limit[TABLES]; /* rows above it are younger */
	uint8_t *bits[TABLES]; /* owned */
	int64_t swept[TABLES]; /* rows up to here are decided */
};

NODISCARD int marks_init(struct marks *m, const int64_t limit[TABLES], struct err *err);
void marks_done(struct marks *m);

bool marks_set(struct marks *m, struct row row); /* was it set before?  row.seq <= limit */
bool marks_has(const struct marks *m, struct row row);

/* To sweep a few rows and no others: set all, then clear those.  1 <= row.seq <= limit */
void marks_set_all(struct marks *m);
void marks_clear(struct marks *m, struct row row);

/* A batch met this row: keep it.  False if the sweep is past it and it was not marked. */
bool marks_keep(struct marks *m, struct row row);
