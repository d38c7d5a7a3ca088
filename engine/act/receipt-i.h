/*
 * receipt-i.h - what was done to projects, so that it can be shown and taken back.
 *
 * A receipt is begun in the batch that keeps what was there, before a directory is touched, and is
 * done when apply says so, which it repeats after a crash.  One that stays begun is of an act that was
 * taken back, or of one that waits for its checks.
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

/*
 * An apply_landed_fn, whose ctx is a landing: the receipt of that act is done, and one that it
 * takes back is undone.
 */
NODISCARD int receipt_landed(const char *path, const struct plan *plan, void *landing,
			     struct err *err);

/* Nothing is left of what it did, without an act of ours. */
NODISCARD int receipt_undone(struct store *s, const struct catalog_id *id, struct err *err);

/*
 * One that is done, by its id or the beginning of it; NULL: the last one that is not the taking back of
 * another.  -ENOENT with a sentence.
 */
NODISCARD int receipt_find(struct store *s, const struct project *p, const char *word,
			   struct receipt *ret, struct err *err);

/* Remove those that stayed begun when their cowfsd died, with the snapshots of what never was. */
void receipt_sweep(struct host *h);
