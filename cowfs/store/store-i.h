/*
 * store-i.h - private to the store: what store, batch, ref, gc and check share.
 *
 * Lock order: write_lock, then lock.  Neither is held while calling outside the
 * store folder.  pool_lock is a leaf: nothing is taken while holding it.
 */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "cowfs/store/batch.h"
#include "cowfs/store/db.h"
#include "cowfs/store/gc.h"
#include "cowfs/store/object.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/schema.h"
#include "cowfs/store/store.h"

/* The log of a database is moved into it when a commit leaves more than this. */
#define STORE_LOG_MAX ((uint64_t)64 << 20)

/* Which of the two tables of objects: each numbers its rows by itself. */
enum table { TABLE_META, TABLE_CHUNKS };
#define TABLES 2

static inline enum table table_of(enum object_kind kind)
{
	return kind == OBJECT_CHUNK ? TABLE_CHUNKS : TABLE_META;
}

/* A row of either table, found. */
struct row {
	enum table table;
	int64_t seq;
};

/* Read-only connections and scratch space for one thread at a time. */
struct reader {
	struct db *db[TABLES];
	struct codec *codec;
	struct buf raw;
	struct buf packed;
	struct store *store;
	struct reader *next; /* guarded by store->pool_lock while idle */
};

struct store {
	char *path;
	enum store_mode mode;
	int lock_fd; /* holds the store for writing; -1 when reading */
	struct object_key key;

	pthread_mutex_t pool_lock; /* guards idle */
	struct reader *idle;

	pthread_mutex_t
	    write_lock; /* guards writer, write_codec, next_seq: one transaction at a time */
	struct db
	    *writer[TABLES]; /* the only connections that write and checkpoint; NULL when reading */
	struct codec *write_codec;
	int64_t next_seq[TABLES]; /* never reused while the process lives: gc relies on it */
	bool chunks_unsynced;     /* some chunk commit did not wait for the disk */

	pthread_mutex_t lock;  /* guards what follows, and the held and touched lists of batches */
	struct map pending;    /* struct pending by object_ref: put, not yet in the database */
	struct batch *batches; /* open ones */
	struct gc *gc;         /* the one under way, or NULL */
	uint64_t gcs_ended;    /* a row found before one ended may be gone after it */
	unsigned checks;       /* under way: they and a gc exclude each other */
};

/* Borrow a reader of the pool; give it back in the same thread. */
NODISCARD int reader_take(struct store *s, struct reader **ret, struct err *err);
void reader_give(struct reader *rd); /* NULL is fine */
DEFINE_CLEANUP(struct reader *, reader_give)

/* Where an object is.  1 found, 0 not there. */
NODISCARD int reader_find(struct reader *rd, enum object_kind kind, const struct object_id *id,
			  struct row *ret, struct err *err);

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
 * Move the logs into the databases if they grew beyond STORE_LOG_MAX.  What cannot be
 * moved now is moved after the next commit: no data depends on it.  write_lock held.
 */
void store_relieve_logs(struct store *s);

/* Make every chunk committed so far durable.  write_lock held. */
NODISCARD int store_sync_chunks(struct store *s, struct err *err);

/* Write the refs of a batch, inside the transaction on meta.db.  write_lock held. */
struct ref_op;
NODISCARD int ref_apply(struct db *meta, const struct ref_op *ops, struct err *err);
void ref_ops_free(struct ref_op *ops);
struct ref_op **batch_ref_ops(struct batch *b); /* end of the list: append here */

/* Every ref there is; a damaged one comes as NULL with the sentence. */
typedef int (*ref_scan_fn)(const struct ref *ref, const struct err *why, void *ctx,
			   struct err *err);
NODISCARD int ref_scan(struct db *meta, ref_scan_fn fn, void *ctx, struct err *err);

/*
 * A batch met this row: keep it through the gc under way.  False if the gc is past it,
 * and the row is as good as gone.  lock held.
 */
bool gc_keep(struct gc *g, struct row row);

/* Call gc_keep() for every row that open batches depend on.  lock held. */
void batches_keep(struct store *s, struct gc *g);
