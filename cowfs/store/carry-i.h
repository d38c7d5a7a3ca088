/*
 * carry-i.h - private to the store: chunks that meta.db carries until chunks.db is synced.
 *
 * Names must not be on the disk before their chunks (invariant 3). Syncing chunks.db before each
 * commit of meta.db would take two waits for the disk, one after the other. So a commit with few
 * new chunks copies them into meta.db, in the same transaction as the names: one log holds both,
 * and one sync makes both durable. The next process that opens the store for writing restores the
 * chunks that chunks.db lacks. The copies go once chunks.db was synced for another reason.
 */
#pragma once

#include "cowfs/store/reader-i.h"
#include "cowfs/store/ref-row-i.h"
#include "cowfs/store/store-i.h"

struct pending_object;

/* Packed bytes: a commit with more new chunks syncs chunks.db, and one that finds so many carried. */
#define CARRY_COMMIT_MAX ((uint64_t)512 << 10)
#define CARRY_MAX        ((uint64_t)8 << 20)

/* Chunks that a commit of names carries.  Each is held until carrying_done(). */
struct carrying {
	struct store *store;
	struct pending_object **list;
	size_t n;
	uint64_t bytes;
};
void carrying_done(struct carrying *c);

/* May a commit carry `n` new chunks of so many bytes?  Makes room in the list.  write_lock held. */
bool carry_may(struct store *s, size_t n, uint64_t bytes);

/* Inside a transaction of meta.db: what need not be carried any more goes, and these come. */
NODISCARD int carry_write(struct store *s, const struct carrying *c, struct err *err);

/* That was committed.  write_lock held. */
void carry_written(struct store *s, const struct carrying *c);

/* chunks.db is synced: all that is carried now may go.  write_lock held. */
static inline void carry_synced(struct store *s)
{
	s->uncarried = false;
	s->n_needless = s->n_carried;
}

/* Put back what chunks.db lacks.  While opening for writing. */
NODISCARD int carry_recover(struct store *s, struct err *err);

/* Nothing is carried any more: before closing.  What fails is done when the store is opened. */
void carry_end(struct store *s);

/* For a store that is open for reading, after a power cut.  1 and the object unpacked, 0: it is not carried. */
NODISCARD int carry_fetch(struct reader *rd, const struct object_id *id, struct buf *out,
			  struct err *err);
