/*
 * trail-i.h - the snapshots of a project and its clones as a graph, and one path followed through
 * it.
 *
 * A snapshot follows its parent. A promotion's result also follows the clone's last snapshot, a
 * rebased clone its new base, and a snapshot after a rollback the one that was gone back to. Each
 * is older than the one that follows it, so no walk goes in circles.
 */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/root.h"
#include "engine/find/engine-i.h"
#include "engine/find/touched-i.h"

#define TRAIL_BEFORE_MAX 4

/* A snapshot; only what a walk needs of its record. */
struct trail_snapshot {
	struct catalog_id id, parent, base;
	struct object_id root;
	int64_t created;
	struct catalog_id back_to; /* the clone was rolled back to that after it; or zero */
	char *clone;               /* owned; or NULL: of the project */
};

/* A receipt that a walk needs. */
struct trail_act {
	struct catalog_id id, before, after, base;
	uint64_t kind; /* enum receipt_kind */
	int64_t created;
	char *clone, *who; /* owned; `clone` may be NULL */
};

/* A file in a snapshot. */
struct trail_file {
	uint32_t mode;
	struct content content;
};

#define TRAIL_LEVELS_MAX 64 /* directories of a path that are remembered */

/* The way to a path in the last snapshot in which it was looked for. */
struct trail_seen {
	char *path; /* owned */
	struct object_id root;
	struct object_id dirs[TRAIL_LEVELS_MAX];
	size_t n;
	int found; /* 0, or -ENOENT */
	struct trail_file file;
};

struct trail {
	struct store *store;
	struct project project;
	struct trail_snapshot *list; /* owned; newest first */
	size_t n, cap;
	struct map by_id;
	struct trail_act *acts; /* owned */
	size_t n_acts, acts_cap;
	const struct trail_snapshot **by_clone;  /* owned; by clone, newest first of each */
	const struct trail_act **acts_by_before; /* owned; by the snapshot before, oldest first */
	const struct trail_act *
	    *acts_by_after;        /* owned; by the one after, in the order of `acts` */
	struct cache *cache;       /* owned; trees that two neighbouring snapshots share */
	struct touched touched;    /* which steps leave a path alone */
	struct trail_seen seen;    /* the directories on the way to the last path */
	struct touched_path asked; /* the path that `touched` was asked about last, */
	char *asked_path;          /* owned */
	uint64_t lookups;          /* trees that were searched */
};

#define TRAIL_NONE SIZE_MAX

NODISCARD int trail_open(struct engine *e, struct trail *ret, struct err *err);
void trail_done(struct trail *t); /* keeps what was found out of steps */

/* The place of a snapshot in the list, or TRAIL_NONE. */
size_t trail_index(const struct trail *t, const struct catalog_id *id);

/* The newest of the project (NULL) or a clone that is not newer than `when`, or TRAIL_NONE. */
size_t trail_newest(const struct trail *t, const char *clone, int64_t when);

/* What it follows, all older; the number of them. */
size_t trail_before(const struct trail *t, size_t at, size_t ret[TRAIL_BEFORE_MAX]);

/* The promotion, rollback or undo that made this snapshot, or NULL. */
const struct trail_act *trail_act_of(const struct trail *t, size_t at);

/* The file at a path.  -ENOENT without a sentence: nothing, or a directory, is there. */
NODISCARD int trail_find(struct trail *t, size_t at, const char *path, struct trail_file *ret,
			 struct err *err);

/*
 * Follow `path` back from *at over all snapshots in which it is the same (`mode` too, if that counts):
 * *at becomes the one that it came into being with, as `file` has it.
 */
NODISCARD int trail_origin(struct trail *t, size_t *at, const char *path,
			   const struct trail_file *file, bool mode, struct err *err);

/*
 * The same file in `before`, which `at` follows: at the same path, or if `renames`, at the one that it
 * was renamed from.  *ret_path is owned by the caller.  -ENOENT without a sentence.
 */
NODISCARD int trail_earlier(struct trail *t, size_t at, size_t before, const char *path,
			    bool renames, struct trail_file *ret, char **ret_path, struct err *err);

/* A clone as it is now, newer than all: it becomes the first of the list. */
NODISCARD int trail_add_now(struct trail *t, const struct clone *c, const struct object_id *root,
			    struct err *err);
