/*
 * catalog.h - what the refs of a store mean: projects, snapshots, tags, clones and receipts.
 *
 * Each is one ref (ref.h) whose value is a small versioned record.  Reading gives a
 * struct that owns its strings; writing goes through a batch and takes effect with
 * its commit.  On-disk: docs/format.md, "Catalog".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cowfs/store/batch.h"
#include "cowfs/store/object.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/store.h"

#define CATALOG_ID_SIZE  8 /* random bytes; shown as 16 hex digits */
#define CATALOG_HEX_SIZE (2 * CATALOG_ID_SIZE + 1)

/* The identity of a project or snapshot; all zero: none. */
struct catalog_id {
	uint8_t b[CATALOG_ID_SIZE];
};

NODISCARD int catalog_id_new(struct catalog_id *ret, struct err *err);
bool catalog_id_is_zero(const struct catalog_id *id);
bool catalog_id_same(const struct catalog_id *a, const struct catalog_id *b);
char *catalog_id_hex(const struct catalog_id *id, char hex[CATALOG_HEX_SIZE]);

/* A real directory that snapshots are taken of.  Ref: its id in hex; no root. */
struct project {
	struct catalog_id id;
	char *path;      /* owned; clean and absolute */
	int64_t created; /* nanoseconds since 1970 */
};

/* A tree that never changes.  Ref: its id in hex; root: the tree (root.h). */
struct snapshot {
	struct catalog_id id;
	struct object_id root;
	struct catalog_id
	    parent; /* the one before it of the same origin, a clone's base for its first, or none */
	struct catalog_id project; /* whose directory it shows */
	char *clone;   /* owned; the clone it was taken of, or NULL: of the project itself */
	char *message; /* owned; may be empty */
	int64_t created;
	uint64_t files, bytes; /* what lies in it */
	/*
	 * Owned; what was there but could not be read and was left out, or NULL: nothing.  Paths
	 * from the top with "//" between them; SNAPSHOT_LACKS_MORE: too many to be told.
	 */
	char *lacks;
	/* Of a clone's: the base that the clone had then; zero: not known, or of the project itself. */
	struct catalog_id base;
};

#define SNAPSHOT_LACKS_MORE "/"
#define SNAPSHOT_LACKS_MAX  ((size_t)60 << 10) /* bytes */

/* A name for a snapshot.  Ref: the name; no root, the snapshot has it. */
struct tag {
	char *name; /* owned */
	struct catalog_id snapshot;
};

/* A writable view.  Ref: its name; root: its tree as last persisted. */
struct clone {
	char *name; /* owned */
	struct object_id root;
	struct catalog_id base; /* the snapshot it started from */
	struct catalog_id project;
	int64_t created;
	int64_t expires;   /* 0: never */
	uint64_t quota;    /* bytes; 0: none */
	uint64_t next_ino; /* the lowest inode number it may give to something new; 0: none yet */
	int64_t grown;     /* bytes of data by which it has grown since it was made */
	uint64_t strict;   /* not 0: an fsync in it survives power loss */
};

enum receipt_kind {
	RECEIPT_PROMOTION = 1,
	RECEIPT_ROLLBACK = 2,
	RECEIPT_UNDO = 3,
};

enum receipt_state {
	RECEIPT_BEGUN = 1, /* of which nobody knows yet that it was done */
	RECEIPT_DONE = 2,
	RECEIPT_UNDONE = 3, /* done, and taken back by a later one */
};

/* A change of a real directory: what was there before it, and after.  Ref: its id in hex; no root. */
struct receipt {
	struct catalog_id id;
	uint64_t kind;  /* enum receipt_kind */
	uint64_t state; /* enum receipt_state */
	struct catalog_id project;
	struct catalog_id before, after; /* snapshots */
	struct catalog_id base;          /* that a clone started from; or none */
	struct catalog_id undoes;        /* the receipt that this one takes back; or none */
	char *clone;                     /* owned; whose changes they were, or NULL */
	char *who;                       /* owned; the name of who did it */
	uint64_t uid;
	int64_t created;
	char *sha256; /* owned; in hex, of what changed (docs/promote.md); or NULL */
	char *checks; /* owned; a JSON object: what was run on it first; or NULL */
};

void project_done(struct project *p);
void snapshot_done(struct snapshot *s);
void tag_done(struct tag *t);
void clone_done(struct clone *c);
void receipt_done(struct receipt *r);

NODISCARD int project_put(struct batch *b, const struct project *p, enum ref_mode mode,
			  struct err *err);
NODISCARD int snapshot_put(struct batch *b, const struct snapshot *s, enum ref_mode mode,
			   struct err *err);
NODISCARD int tag_put(struct batch *b, const struct tag *t, enum ref_mode mode, struct err *err);
NODISCARD int clone_put(struct batch *b, const struct clone *c, enum ref_mode mode,
			struct err *err);
NODISCARD int receipt_put(struct batch *b, const struct receipt *r, enum ref_mode mode,
			  struct err *err);

/* -ENOENT if there is none, -EBADMSG if its record is not one. */
NODISCARD int project_get(struct store *s, const struct catalog_id *id, struct project *ret,
			  struct err *err);
NODISCARD int snapshot_get(struct store *s, const struct catalog_id *id, struct snapshot *ret,
			   struct err *err);
NODISCARD int tag_get(struct store *s, const char *name, struct tag *ret, struct err *err);
NODISCARD int clone_get(struct store *s, const char *name, struct clone *ret, struct err *err);
NODISCARD int receipt_get(struct store *s, const struct catalog_id *id, struct receipt *ret,
			  struct err *err);

/*
 * By a prefix of the id's hex digits.  -ENOENT if none has it, -EINVAL with a
 * sentence if several do or it is no hex.
 */
NODISCARD int snapshot_find(struct store *s, const char *prefix, struct snapshot *ret,
			    struct err *err);

/* Visit all of a kind.  A non-zero answer of `fn` ends the walk and is returned. */
typedef int (*project_fn)(const struct project *p, void *ctx, struct err *err);
typedef int (*snapshot_fn)(const struct snapshot *s, void *ctx, struct err *err);
typedef int (*tag_fn)(const struct tag *t, void *ctx, struct err *err);
typedef int (*clone_fn)(const struct clone *c, void *ctx, struct err *err);
typedef int (*receipt_fn)(const struct receipt *r, void *ctx, struct err *err);

NODISCARD int project_each(struct store *s, project_fn fn, void *ctx, struct err *err);
NODISCARD int snapshot_each(struct store *s, snapshot_fn fn, void *ctx, struct err *err);
NODISCARD int tag_each(struct store *s, tag_fn fn, void *ctx, struct err *err);
NODISCARD int clone_each(struct store *s, clone_fn fn, void *ctx, struct err *err);
NODISCARD int receipt_each(struct store *s, receipt_fn fn, void *ctx, struct err *err);
