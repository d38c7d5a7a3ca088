/*
 * batch-i.h - private to the store: what a batch holds until it has ended.
 *
 * That is objects put into it that may not be in a database yet, and rows of the databases that it
 * depends on. store->lock guards everything here unless a comment says otherwise.
 */
#pragma once

#include <stdatomic.h>

#include "cowfs/store/batch.h"
#include "cowfs/store/ref-row-i.h"
#include "cowfs/store/store-i.h"

/* Packed bytes that one transaction writes ahead of a commit, about. */
#define BATCH_PIECE_MAX ((size_t)4 << 20)

struct pending_object {
	struct object_ref what;   /* its key in store->pending */
	unsigned refs;            /* batches that hold it, and threads that compare with it */
	const struct batch *last; /* the last that took it, so that one batch holds it about once */
	struct row stored;        /* seq 0 until it is in the database */
	size_t len;
	uint8_t packed[]; /* never changes */
};

struct batch {
	struct store *store;
	struct batch *next;
	struct pending_object **held; /* objects it put that may not be in the database yet */
	size_t n_held, cap_held;
	struct row *touched; /* rows of the database that it depends on */
	size_t n_touched, cap_touched;
	size_t pending_bytes[TABLES]; /* packed bytes of held objects that are not stored */

	uint64_t appended; /* of all that were new */

	struct ref_op *ref_ops; /* the committing thread's own, like those below */
	struct ref_op **ref_ops_end;
	struct buf pinned; /* struct object_id: trees */
	bool committed;
	bool expects_new; /* puts do not look into the databases */
	atomic_bool expects_passing_trees;
};

/* The batch holds it no longer.  lock held. */
void batch_let_go(struct batch *b, struct pending_object *p);
void pending_object_unref(struct store *s, struct pending_object *p);

/*
 * Is it pending?  1: held by this batch, and *ret a reference of the caller's.  0.  -ENOMEM.
 * *ret_gcs_ended is for batch_touch_found().  Takes lock.
 */
NODISCARD int batch_take_pending(struct batch *b, const struct object_ref *key,
				 struct pending_object **ret, uint64_t *ret_gcs_ended);

/*
 * Make an object pending, from its packed form.  1: new.  0: another thread was faster, and
 * *ret is as batch_take_pending() has it.  -ENOMEM.  Takes lock.
 */
NODISCARD int batch_make_pending(struct batch *b, const struct object_ref *key,
				 const struct buf *packed, struct pending_object **ret);

/*
 * Depend on a row found since `gcs_ended` gcs had ended.  1; 0 if a gc has given it up
 * meanwhile, or may have; -ENOMEM.  Takes lock.
 */
NODISCARD int batch_touch_found(struct batch *b, struct row row, uint64_t gcs_ended);

/*
 * A transaction is committed: these objects are in the database now, at these rows.  What
 * is there, by this batch or another, needs no memory beyond the number of its row.  Takes lock.
 */
void batch_settle(struct batch *b, struct pending_object **stored, const struct row *rows,
		  size_t n);

/*
 * Write what is pending of one table in this batch, to free memory.  It has no name yet, so
 * in any order: a tree that is there before its chunks is garbage until somebody puts both.
 * In pieces, and commits go before each.  Takes write_lock.
 */
NODISCARD int batch_write_pending(struct batch *b, enum table t, struct err *err);
