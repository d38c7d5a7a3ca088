/*
 * reader-i.h - private to the store: a pool of read-only connections, and finding objects.
 */
#pragma once

#include "cowfs/store/db.h"
#include "cowfs/store/row-i.h"
#include "cowfs/store/store.h"

/* Read-only connections and scratch space for one thread at a time. */
struct reader {
	struct db *db[TABLES];
	struct codec *codec;
	struct buf raw;
	struct buf packed;
	struct store *store;
	struct reader *next; /* guarded by store->pool_lock while idle */
};

/* Borrow a reader of the pool; give it back in the same thread. */
NODISCARD int reader_take(struct store *s, struct reader **ret, struct err *err);
void reader_give(struct reader *rd); /* NULL is fine */
DEFINE_CLEANUP(struct reader *, reader_give)

/* Add one to the pool that takes over connections which are open already. */
NODISCARD int reader_add(struct store *s, struct db *db[TABLES], struct err *err);

/* Where an object is.  1 found, 0 not there. */
NODISCARD int reader_find(struct reader *rd, enum object_kind kind, const struct object_id *id,
			  struct row *ret, struct err *err);

/* What it takes in the store, unverified.  1 found, 0 not there. */
NODISCARD int reader_packed_size(struct reader *rd, enum object_kind kind,
				 const struct object_id *id, uint64_t *ret, struct err *err);

/*
 * Replace `out` with an object, unpacked but not compared with its id.  1 found, 0 not
 * there, or -EBADMSG.  `db` is the connection to use, so that a writer can ask its own.
 */
NODISCARD int object_fetch(struct db *db, struct codec *codec, enum object_kind kind,
			   const struct object_id *id, struct buf *out, struct row *ret_row,
			   struct err *err);

/* Sentences about an object, in one voice. */
int object_damaged(struct err *err, enum object_kind kind, const struct object_id *id,
		   const char *why);

/*
 * Are the bytes stored under an id the ones being put?  -EEXIST if two contents claim one
 * id, -EBADMSG if the stored ones are damaged.
 */
NODISCARD int object_compare(const struct object_key *key, const struct object_ref *what,
			     const struct buf *stored, const void *data, size_t len,
			     struct err *err);
