/*
 * record.h - the meaning of refs: projects, snapshots, tags, clones, receipts, resolutions,
 * artifacts, allowances, hidden files.
 *
 * Each is one ref (ref.h) whose value is a small versioned record; its struct owns its strings.
 * On-disk: docs/reference/format.md, "Catalog".
 */
#pragma once

#include <stdint.h>

#include "cowfs/store/catalog-id.h"
#include "cowfs/store/object.h"

/* Directories that are no project of anybody, but have snapshots like one. */
enum project_hidden {
	PROJECT_SHOWN = 0,
	PROJECT_OF_GIT = 1, /* git's own, kept for the clones of projects that it serves */
	PROJECT_TARGET = 2, /* promotions with --to put results there; captured in part */
	PROJECT_IMAGE = 3,  /* an imported image: its path is none, and ends with its name */
};

/* A real directory that snapshots are taken of.  Ref: its id in hex; no root. */
struct project {
	struct catalog_id id;
	char *path;      /* owned; clean and absolute */
	int64_t created; /* nanoseconds since 1970 */
	uint64_t hidden; /* enum project_hidden */
	uint64_t ino;    /* of the directory at the last capture; 0: not known */
	int64_t born;    /* when that was made, nanoseconds since 1970; 0: not known */
	uint64_t fs;     /* what the system calls the file system that it is on; 0: not known */
	char *former;    /* owned; where it was before and until when (moved-i.h), or NULL */
};

/* Why a snapshot was taken. */
enum snapshot_made {
	SNAPSHOT_MADE_UNKNOWN = 0, /* written before records said so */
	SNAPSHOT_MADE_BY_USER = 1,
	SNAPSHOT_MADE_AUTOMATICALLY = 2, /* before a rollback, a run, ...: kept to go back to */
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
	 * from the top with "//" between them; SNAPSHOT_LACKS_MORE: too many to list.
	 */
	char *lacks;
	/* Of a clone's: the base that the clone had then; zero: not known, or of the project itself. */
	struct catalog_id base;
	uint64_t made; /* enum snapshot_made */
	char *meta;    /* owned; labels (engine/api/meta.h), or NULL: none */
	char *image;   /* owned; of an image: what it says of itself, a JSON object; or NULL */
	/*
	 * Owned; the directory from the top that it holds alone, of the project at least: what lies
	 * outside of it was not looked at.  NULL: it is whole.
	 */
	char *part;
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
	struct catalog_id base; /* what counts as changed is what differs from this snapshot */
	struct catalog_id project;
	int64_t created;
	int64_t expires;    /* 0: never */
	uint64_t quota;     /* bytes; 0: none */
	uint64_t next_ino;  /* the lowest inode number it may give to something new; 0: none yet */
	int64_t grown;      /* bytes of data by which it has grown since it was made */
	int64_t meta;       /* and of inodes, names, targets and attributes */
	uint64_t strict;    /* not 0: an fsync in it survives power loss */
	uint64_t private;   /* not 0: for root alone, whom no permission stops */
	uint64_t no_xattrs; /* not 0: private, and attributes can be neither seen nor set */
	uint64_t run;       /* id of the run that it was made for and ends with; 0: none */
	/* The snapshot of another clone that it started as; zero: it started as its base. */
	struct catalog_id start;
	uint64_t owner; /* a number by which its maker knows it again; 0: none */
	char *who;      /* owned; the name of the user who made it, or NULL: not known */
	char *via; /* owned; what did it for them, as that says itself: "agent:NAME"; or NULL */
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
	struct catalog_id
	    base; /* that the clone had; of a rollback of some paths, to which; or none */
	struct catalog_id undoes; /* the receipt that this one takes back; or none */
	char *clone;              /* owned; whose changes they were, or NULL */
	char *who;                /* owned; the name of the user who did it */
	uint64_t uid;
	int64_t created;
	char *sha256; /* owned; in hex, of what changed (docs/guide/promote.md); or NULL */
	char *checks; /* owned; a JSON object: what was run on it first; or NULL */
	struct catalog_id next_base; /* of a promotion: that the clone has since; or none */
	uint64_t base_due; /* not 0: the clone's base may not fit the state yet (clone-base-i.h) */
	/* The directory that changed (PROJECT_TARGET), which before and after are of; or none. */
	struct catalog_id target;
};

/* How conflicts of a clone were settled.  Ref: the clone's name; root: a tree with the rest of it. */
struct resolutions {
	char *clone; /* owned */
	struct object_id root;
	int64_t created; /* of the clone: a later one of that name is another */
};

/*
 * Files of a clone that outlive it.  Ref: its id in hex; root: a tree with these paths and the
 * directories above them, in which no file has several names.
 */
struct artifact {
	struct catalog_id id;
	struct object_id root;
	struct catalog_id project;
	char *clone;     /* owned; that had them */
	char *run;       /* owned; the id of the run that they came from, or NULL: none */
	char *paths;     /* owned; from the top, with "//" between them */
	char *sha256;    /* owned; in hex, of all of it (docs/guide/agents.md) */
	int64_t created; /* nanoseconds since 1970 */
	uint64_t files, bytes;
	char *meta; /* owned; labels (engine/api/meta.h), or NULL: none */
};

/* Hosts that the runs of a clone may reach.  Ref: the clone's name; no root. */
struct allowance {
	char *clone;     /* owned */
	int64_t created; /* of the clone: a later one of that name is another */
	char *rules;     /* owned; as --net takes them, with commas between them */
};

/* Inode numbers. */
struct record_numbers {
	uint64_t *list; /* owned */
	size_t n;
};
#define RECORD_NUMBERS_MAX 65536

/*
 * Files that a run of a clone must not see, wherever they lie by now.  Ref: the clone's name, or '@' and the
 * id in hex of a snapshot whose clone is not here; no root.
 */
struct hidden {
	char *clone;                   /* owned; or "@ID" */
	int64_t created;               /* of the clone: a later one of that name is another */
	struct record_numbers numbers; /* rising */
	struct record_numbers dirs;    /* rising; hidden as long as secrets are in them */
};

/*
 * A change of a record that must not be changed unseen: a link of the chain.  Ref: its number in 16 hex
 * digits, or AUDIT_HEAD: a copy of the last one.  No root.
 */
struct audit {
	char *name;      /* owned */
	uint64_t number; /* from 1 */
	int64_t time;    /* nanoseconds since 1970 */
	uint64_t first;  /* the number of the oldest one that is kept */
	uint64_t kind;   /* enum ref_kind of what was written */
	uint64_t gone;   /* not 0: it was deleted */
	char *subject;   /* owned; its name */
	char *sha256;    /* owned; in hex, of its value; of what was deleted NULL */
	char *before;    /* owned; in hex, the digest of the entry before; of the first one NULL */
	char *digest;    /* owned; in hex, of all that stands above */
};
#define AUDIT_HEAD "head"

/*
 * A capture that promised bytes without reading them (docs/design/lazy.md).  Ref: its id in hex;
 * root: a tree with one name for each promise that is kept or lost.
 */
struct lazy {
	struct catalog_id id;
	struct object_id root;
	struct catalog_id project, snapshot; /* whose files were promised, and where they stand */
	int64_t created;                     /* nanoseconds since 1970 */
	uint64_t files, bytes;               /* promised */
	uint64_t ended; /* not 0: nothing is to be captured any more; the root has what was lost */
	uint64_t passing; /* not 0: it is for clones alone, and ends with the last of them */
	uint64_t remote;  /* not 0: a remote has the bytes; its root has which, and where */
};

void audit_done(struct audit *a);
void allowance_done(struct allowance *a);
void hidden_done(struct hidden *h);
void resolutions_done(struct resolutions *r);
void project_done(struct project *p);
NODISCARD int project_copy(const struct project *from, struct project *ret); /* -ENOMEM, or 0 */
void snapshot_done(struct snapshot *s);
void tag_done(struct tag *t);
void clone_done(struct clone *c);
void receipt_done(struct receipt *r);
