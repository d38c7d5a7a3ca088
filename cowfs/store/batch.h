/*
 * batch.h - objects and refs written together.
 *
 * Objects go in bottom-up: an object may name only objects put through the same batch, or reachable
 * from a ref or pin that stays until the batch has ended. Then nothing that a batch names can be
 * missing, or be swept by a gc that runs beside it.
 *
 *   - batch_commit() makes the refs of the batch visible in one step, after every object they
 *     reach. Before that, or if it fails, none of them is.
 *   - A put that meets an existing id compares the bytes, and refuses (-EEXIST) rather than let two
 *     contents share an id.
 *   - Objects beyond BATCH_PENDING_MAX of memory, for chunks and for all others, are written out
 *     early, without a name; if the batch is never committed, gc removes them.
 *   - No commit keeps the others waiting for long: large ones write in pieces beforehand.
 *   - Before it returns -ENOSPC, a batch has moved the logs into the databases and tried again. New
 *     objects find the disk full a little early, so that there is room left for removing things.
 *   - After a failed sync nothing more is written until the store has been opened again: the kernel
 *     reports such a failure once, and the success of a later sync means nothing.
 *
 * A commit that has refs and new chunks waits for the disk once, whatever its durability, so that
 * no power cut can leave a name without its chunks. So group frequent commits.
 *
 * Several threads may put into one batch at once; begin, commit and abandon belong to one of them.
 * Several batches may be open at once.
 */
#pragma once

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

#define BATCH_PENDING_MAX ((size_t)16 << 20)

struct batch;

enum batch_durability {
	BATCH_SAFE,    /* survives the death of the process; power loss may take it, whole */
	BATCH_DURABLE, /* survives power loss once batch_commit() has returned 0 */
};

NODISCARD int batch_begin(struct store *s, struct batch **ret, struct err *err);

/*
 * On failure nothing of the batch is visible and it is still open: commit again, or end it.
 * After a crash it may turn up nevertheless, but then whole.
 */
NODISCARD int batch_commit(struct batch *b, enum batch_durability durability, struct err *err);

/* Ends the batch, committed or not; NULL is fine. */
void batch_end(struct batch *b);
DEFINE_CLEANUP(struct batch *, batch_end)

struct store *batch_store(const struct batch *b);

/*
 * What is put from now on is new, as far as one can tell: then no put looks for it in the store.
 * Of what is there after all, the commit notices that and keeps the old row, and a put says that it
 * is new.  For few objects; a look costs less than packing many in vain.
 */
void batch_expect_new(struct batch *b);

/*
 * Trees that are put from now on are new, and replaced soon: they are neither looked for in the store
 * nor compressed, which costs more than writing them.  From any thread.
 */
void batch_expect_passing_trees(struct batch *b);

/* Packed bytes of what it put that was new, or expected to be, so far.  From the thread that commits it. */
uint64_t batch_appended(const struct batch *b);

/* Pin a tree (pin.h) until the batch has ended, so that objects of the batch may name what it reaches. */
NODISCARD int batch_pin(struct batch *b, const struct object_id *tree, struct err *err);

/* Store a copy of the bytes and name it in *ret_id.  1 if it is new, 0 if it was there already. */
NODISCARD int batch_put(struct batch *b, enum object_kind kind, const void *data, size_t len,
			struct object_id *ret_id, struct err *err);
