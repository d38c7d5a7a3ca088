/*
 * store.h - a directory of immutable objects and the names for them.
 *
 * Two SQLite files: chunks.db holds file content, meta.db holds recipes, trees, attribute sets and
 * refs. Objects and refs are written through a batch (batch.h).
 *
 *   - store_get() checks every object against its id. Damage is -EBADMSG with a sentence, never
 *     data.
 *   - One process at a time has a store open for writing; a second gets -EBUSY at once, naming the
 *     holder. Any number of processes may read beside it.
 *   - A reader never sees a ref before all that it reaches.
 *
 * A struct store may be used by many threads at once. On-disk: docs/reference/format.md.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/object.h"

struct store;

enum store_mode {
	STORE_READ,   /* an existing store, without taking it */
	STORE_WRITE,  /* an existing store, to be its one writer */
	STORE_CREATE, /* the same, made first if the directory holds none */
};

/*
 * -ENOENT if there is no store, -EBUSY if another process writes it, -EPROTO if it
 * was made by a later version (its files are then untouched), -EBADMSG if it is damaged.
 */
NODISCARD int store_open(const char *path, enum store_mode mode, struct store **ret,
			 struct err *err);

/*
 * May root use this directory?  -EACCES with a sentence if it belongs to another user or others may
 * write in it: they could plant what root then reads and follows.  0 for an ordinary user, and if
 * nothing is there.  store_open() checks this first.
 */
NODISCARD int store_check_owner(const char *path, struct err *err);

/* Every batch must have ended.  NULL is fine. */
void store_close(struct store *s);
DEFINE_CLEANUP(struct store *, store_close)

const char *store_path(const struct store *s);

/*
 * How many bytes the store's files may take, logs included; 0: as many as the disk has.  A put
 * that would exceed them fails with -EDQUOT and a sentence; removing never does.  The store must
 * be open for writing.
 */
void store_set_limit(struct store *s, uint64_t bytes);
uint64_t store_limit(const struct store *s);

/* What is left of the limit; UINT64_MAX if there is none. */
uint64_t store_limit_left(struct store *s);

const struct object_key *store_key(const struct store *s);

/*
 * Replace the content of `out` with an object.  -ENOENT if the store has no such
 * object, -EBADMSG if what it has does not match the id; `out` is then empty.
 */
NODISCARD int store_get(struct store *s, enum object_kind kind, const struct object_id *id,
			struct buf *out, struct err *err);

/* The same for an object that something names: then one that is missing is damage too, -EBADMSG. */
NODISCARD int store_require(struct store *s, enum object_kind kind, const struct object_id *id,
			    struct buf *out, struct err *err);

/* 1 if the store has a row for the object, whatever its state; 0 if not. */
NODISCARD int store_has(struct store *s, enum object_kind kind, const struct object_id *id,
			struct err *err);

struct store_sizes {
	uint64_t chunks;       /* number of chunks */
	uint64_t objects;      /* number of recipes, trees and attribute sets */
	uint64_t chunk_bytes;  /* packed bytes of the chunks */
	uint64_t object_bytes; /* packed bytes of the others */
	uint64_t file_bytes;   /* what the store's files take, write-ahead logs included */
	uint64_t free_bytes;   /* pages in them that hold nothing */
};
/* What the two files of a store that is open for writing take, without their logs. */
uint64_t store_file_bytes(struct store *s);

NODISCARD int store_sizes(struct store *s, struct store_sizes *ret, struct err *err);

/* What in its files holds nothing; a look at their headers only. */
NODISCARD int store_free_bytes(struct store *s, uint64_t *ret, struct err *err);

/* How large its files are, logs included, without a look into them. */
uint64_t store_disk_bytes(const struct store *s);

/*
 * Move what the write-ahead logs hold into the databases if it is much.  An owner calls it now
 * and then, so that a commit does so only if a log grows very large.
 */
void store_tidy(struct store *s);

/*
 * What was committed before the call survives power loss when this has returned 0.  Whoever
 * asks while another waits for the disk shares the next wait with all others.
 */
NODISCARD int store_harden(struct store *s, struct err *err);

/* Move all that the write-ahead logs hold into the databases, and make it durable. */
NODISCARD int store_checkpoint(struct store *s, struct err *err);

/*
 * Close the connections for reading that nobody uses at the moment.  Each keeps up to 8 MiB of each
 * database, and after many threads have read at once there are many.
 */
void store_trim(struct store *s);

/* What the logs hold that the databases may yet have to grow by.  Never waits. */
uint64_t store_log_bytes(struct store *s);
