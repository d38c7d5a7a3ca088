/*
 * store-i.h - private to the store: shared by store, reader, batch, gc and check.
 *
 * Lock order: write_lock, then lock. Neither is held while calling outside the store folder.
 * pool_lock is a leaf: nothing is taken while holding it.
 */
#pragma once

#include <errno.h>
#include <pthread.h>

#include "base/lock.h"
#include "base/map.h"
#include "cowfs/store/batch.h"
#include "cowfs/store/db.h"
#include "cowfs/store/marks-i.h"
#include "cowfs/store/object.h"
#include "cowfs/store/reader-i.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/store.h"

/*
 * The log of a database is moved into it when nobody waits for it (store_tidy()) if it has
 * more than the one, and by the commit that leaves more than the other.  To move it is to
 * write all of it once more, and to wait for the disk.
 */
#define STORE_LOG_QUIET ((uint64_t)32 << 20)
#define STORE_LOG_MAX   ((uint64_t)256 << 20)

/* The same where room is short. */
#define STORE_LOG_SHORT ((uint64_t)64 << 20)

/* Where less is free, each commit makes sure that its log can be moved into the database. */
#define STORE_ROOM_PLENTY (4 * STORE_LOG_MAX)

struct cache;

struct store {
	char *path;
	enum store_mode mode;
	int lock_fd; /* holds the store for writing; -1 when reading */
	struct object_key key;

	_Atomic(struct cache *) cache; /* borrowed; the one that trees are read through, or NULL */
	_Atomic uint64_t limit;        /* bytes that its files may take; 0: none */

	pthread_mutex_t pool_lock; /* guards idle */
	struct reader *idle;

	/*
	 * Guards writer, write_codec, next_seq, commits, meta_ghost, reserved, and what is carried:
	 * one transaction at a time.
	 */
	pthread_mutex_t write_lock;
	struct db *writer[TABLES]; /* the only ones to write and checkpoint; NULL: reading */
	struct codec *write_codec;
	int64_t next_seq[TABLES]; /* never reused while the process lives: gc relies on it */
	_Atomic uint64_t commits[TABLES]; /* so far; read without the lock */
	bool reserved;                    /* there may be a file that only holds room */
	bool meta_ghost; /* a commit failed there and may come back, unless another overwrites it */

	_Atomic uint64_t room_seen;   /* bytes that the disk had, */
	_Atomic int64_t room_seen_at; /* at that time, ms */

	/*
	 * Commits go before pieces of a large one (batch-write.c): how many came, counted before they wait
	 * for write_lock, and how many have had it.
	 */
	_Atomic uint64_t commits_came;
	uint64_t commits_begun;        /* guarded by write_lock */
	pthread_cond_t commits_passed; /* with write_lock */

	_Atomic bool
	    uncarried; /* chunks.db has some that are neither synced nor carried (carry-i.h); read without the lock */
	struct object_id *carried; /* owned; chunks that meta.db carries */
	size_t n_carried, cap_carried;
	size_t n_needless; /* the first of them, that need not be carried any more */
	uint64_t carried_bytes;

	pthread_mutex_t
	    sync_lock; /* guards `syncing`, and waits; a leaf, taken without the others */
	pthread_cond_t sync_ended;
	bool syncing[TABLES]; /* somebody waits for the disk, for all who ask meanwhile */
	_Atomic uint64_t synced[TABLES]; /* of `commits`, those that are on the disk */

	pthread_mutex_t lock; /* guards what follows, and the held and touched lists of batches */
	struct map pending; /* struct pending_object by object_ref: put, not yet in the database */
	struct batch *batches;  /* open ones */
	struct map pins;        /* struct pin by object_ref, owned: roots of every gc */
	struct marks *marks;    /* of the gc under way, or NULL */
	uint64_t gcs_ended;     /* a row found before one ended may be gone after it */
	uint64_t gcs_done;      /* of them, those that freed all there was */
	unsigned checks;        /* under way: they and a gc exclude each other */
	bool aside;             /* the gc under way ends when somebody wants to do something else */
	unsigned upkeep_wanted; /* threads that wait for that */
	pthread_cond_t aside_gone;
};

/* What a file of the store takes on the disk; `suffix`: of one beside it.  0 if it is not there. */
uint64_t store_size_on_disk(const char *path, const char *suffix);
/* Add what in the file holds nothing. */
NODISCARD int store_size_free(struct db *db, uint64_t *sum, struct err *err);

/*
 * Move the logs into the databases if they grew beyond what a commit may leave.  What cannot be
 * moved now is moved after the next commit: no data depends on it.  write_lock held.
 */
void store_relieve_logs(struct store *s);

static inline bool store_is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

/* Bytes that can still be written, by the disk and by the limit; UINT64_MAX if nobody knows. */
uint64_t store_room(struct store *s);

/* Remove the file that holds room, if there is one.  write_lock held, or still opening. */
void store_drop_reserve(struct store *s);

/* A transaction.  `write` may be called twice: what finds no room is tried again when some was made. */
struct store_change {
	enum table table;
	bool durable;
	uint64_t bytes; /* of new objects; 0: there is nothing new, it may make room */
	int (*write)(struct store *s, void *ctx, struct err *err);
	void *ctx;
};

/*
 * Every transaction is written and synced through these: after a failed sync they refuse,
 * because nobody knows what the disk holds.  write_lock held.
 */
NODISCARD int store_writable(struct store *s, struct err *err);
NODISCARD int store_write(struct store *s, const struct store_change *c, struct err *err);
NODISCARD int store_sync(struct store *s, enum table t, struct err *err); /* all commits so far */

/* The same without locks: others may commit meanwhile, and wait for the same sync. */
NODISCARD int store_sync_aside(struct store *s, enum table t, struct err *err);

/*
 * From here on no crash or power cut brings back refs that are not there now: what was
 * committed is on the disk, and what failed to be committed is overwritten.  write_lock held.
 */
NODISCARD int store_settle_names(struct store *s, struct err *err);

/*
 * Called before a gc, a check or a repair: ends a background gc, and lets none begin until
 * upkeep_begun().  Call it without locks.
 */
void upkeep_begins(struct store *s);
void upkeep_begun(struct store *s);

/* Takes a change of a ref, to be written with the commit. */
struct ref_op;
void batch_add_ref_op(struct batch *b, struct ref_op *op);

/* Mark every row that open batches depend on.  lock held. */
void batches_keep(struct store *s, struct marks *m);

/* Visit what is pinned (pin.h).  lock held. */
typedef int (*pin_fn)(const struct object_ref *what, void *ctx, struct err *err);
NODISCARD int pins_each(struct store *s, pin_fn fn, void *ctx, struct err *err);
void pins_done(struct store *s);
