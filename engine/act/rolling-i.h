/*
 * rolling-i.h - the state of one rollback: the wanted tree, the changes, and the saved snapshot.
 */
#pragma once

#include "engine/act/acts-i.h"
#include "engine/api/rollback.h"
#include "snapshot/apply/plan.h"

/* Begins the message of the snapshot that is taken first. */
#define ROLLING_BEFORE "before "

struct rolling {
	struct task *task;
	const struct engine_rollback_options *options;
	struct store *store;
	struct project project;
	struct clone clone;     /* its name NULL: the project itself */
	struct snapshot to;     /* what is wanted */
	struct snapshot base;   /* of a clone: its base now, ... */
	struct snapshot rebase; /* ... and its base when `to` was taken; all zero: the same */
	struct snapshot newest; /* of the same origin; all zero: none */
	char last
	    [CATALOG_HEX_SIZE]; /* the newest that somebody asked for, else what a clone started as */
	struct snapshot
	    saved; /* its strings are borrowed; zero id: `newest` already has this state */
	struct object_id now;
	struct ignore *paths;    /* owned; the paths to roll back; NULL: all */
	const char *lacks;       /* paths of which `to` does not know; as snapshot.lacks */
	struct object_id wanted; /* the result: `to`, or the present state with `paths` from `to` */
	bool pinned;             /* `wanted` is pinned */
	const struct capture_report *unread; /* of a project: what could not be read; or NULL */
	struct plan plan;
	struct engine_rolled result;
};

/* Was the state made by a clone?  Then what a run left there would reach the project. */
bool rolling_is_foreign(const struct rolling *g);

/* Plan the way from `now` to `wanted`. */
NODISCARD int rolling_compare(struct rolling *g, int64_t as_of, struct err *err);

/*
 * 1 if the way from `now` to that root would change a path.  Times and inode numbers make no difference, nor
 * does what a rollback leaves alone.
 */
NODISCARD int rolling_differs(struct rolling *g, const struct object_id *root, int64_t as_of,
			      struct err *err);

/* Is the result put together from two states? */
bool rolling_mixes(const struct rolling *g);

/* Change the one or the other, if that is wanted and anything differs; fills in g->result. */
NODISCARD int rolling_move_clone(struct rolling *g, struct err *err);
NODISCARD int rolling_move_project(struct rolling *g, struct err *err);
