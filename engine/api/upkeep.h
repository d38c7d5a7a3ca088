/*
 * upkeep.h - the state of a store, and work that keeps it in order.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "engine/api/history.h"

/* How much of a clone is its own, as last persisted. */
struct engine_share {
	char *clone;      /* owned */
	char *project;    /* owned; its path */
	uint64_t logical; /* bytes that its files show */
	uint64_t
	    unshared; /* packed bytes stored for it and not for what it started from (unshared.h) */
};

struct engine_stats {
	uint64_t projects, snapshots, tags, clones;
	uint64_t logical; /* bytes that all snapshots and clones show together */
	uint64_t stored;  /* packed bytes that hold them, names and attributes included */
	uint64_t chunks, objects;
	uint64_t disk;               /* what the store's files take */
	uint64_t free;               /* of that, what holds nothing */
	uint64_t limit;              /* what they may take, by config.yaml; 0: no limit */
	struct engine_share *shares; /* owned; one for each clone, by name */
	size_t n_shares;
};

/* -ENOENT if there is no store yet. */
NODISCARD int engine_stats(struct engine *e, struct engine_stats *ret, struct err *err);
void engine_stats_done(struct engine_stats *s);

struct engine_damage {
	char *object; /* what is damaged: "chunk 0123...", "meta.db" */
	char *why;
	char **
	    paths; /* the first of those it belongs to: "snapshot ID:PATH", escaped as json.h has names */
	size_t n_paths;
	size_t n_paths_all;
	char *
	    from; /* owned; "project '/p'", "clone 'c'": what it came back from; NULL: it did not */
};

struct engine_check {
	uint64_t objects, bytes, refs;
	struct engine_damage *damage; /* owned; after a repair, what is left of it */
	size_t n_damage;
	struct engine_damage *restored; /* owned; what a repair brought back */
	size_t n_restored;
	uint64_t mended;    /* rows that a repair put right by themselves */
	uint64_t set_aside; /* rows that it took out of the databases */
	uint64_t elapsed_ms;
};

struct engine_check_options {
	/*
	 * Set aside what is damaged, and store again what projects and mounted clones still have of
	 * it.  No snapshot, tag or clone goes.
	 */
	bool repair;
	struct engine_watch watch;
};

/*
 * Verify every byte of the store.  Damage is a finding; this fails only if it could
 * not look.  -EBUSY while another process writes the store: what it removes meanwhile
 * would look like damage.
 */
NODISCARD int engine_check(struct engine *e, const struct engine_check_options *options,
			   struct engine_check *ret, struct err *err);
void engine_check_done(struct engine_check *c);

struct engine_gc_options {
	/*
	 * Snapshots of projects, and of clones that are no more, go if they are neither among the
	 * last of their project nor young enough; 0 for both: none goes.  What a tag or a
	 * clone names stays, and the newest of each project.
	 */
	uint64_t keep_last;
	uint64_t keep_within_ms;
	bool dry_run; /* tell what would go, and change nothing */
	struct engine_watch watch;
};

struct engine_gc {
	struct engine_history forgotten; /* snapshots that went, project by project */
	uint64_t kept, removed;          /* objects */
	uint64_t freed;                  /* packed bytes that the removed ones held */
	uint64_t disk_before, disk_after;
	uint64_t elapsed_ms;
};

/* Free what no snapshot and no clone needs. */
NODISCARD int engine_gc(struct engine *e, const struct engine_gc_options *options,
			struct engine_gc *ret, struct err *err);
void engine_gc_done(struct engine_gc *gc);
