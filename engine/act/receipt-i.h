/*
 * receipt-i.h - records of changes to projects, so that they can be shown and undone.
 *
 * A receipt is begun in the batch that saves the old state, before the directory is touched. It
 * becomes done when apply reports that the change has landed, which may be after a crash. A receipt
 * that stays begun belongs to a change that failed and was taken back, or to one that waits for its
 * checks.
 */
#pragma once

#include "base/sha256.h"
#include "cowfs/store/catalog.h"

struct host;
struct plan;

/* Give it an id, a time and who did it, and put it into the batch as begun; `who` is then owned. */
NODISCARD int receipt_begin(struct batch *b, struct receipt *r, struct err *err);

struct receipt_landing {
	struct store *store;
	char sha256[SHA256_HEX_SIZE]; /* out: of what changed; "": not of this kind */
};

/* An apply_landed_fn whose ctx is a landing: its receipt is done, and one that it undoes is undone. */
NODISCARD int receipt_landed(const char *path, const struct plan *plan, void *landing,
			     struct err *err);

/* Set it to undone without a change of ours, because nothing is left of what it did. */
NODISCARD int receipt_undone(struct store *s, const struct catalog_id *id, struct err *err);

/*
 * Find a done receipt by its id or the beginning of it; NULL: the newest that is not an undo.  -ENOENT
 * with a sentence.
 */
NODISCARD int receipt_find(struct store *s, const struct project *p, const char *word,
			   struct receipt *ret, struct err *err);

/* Remove receipts that stayed begun when their cowfsd died, with their snapshots. */
void receipt_sweep(struct host *h);
