/*
 * layers.h - the live clones of one store: their shared resources, and when they are persisted.
 *
 * All layers share one cache of stored objects, one budget of dirty memory, and one committer: a
 * thread that persists a layer some time after it was changed, or earlier when the budget runs
 * short. Writers wait when the budget is used up.
 */
#pragma once

#include "cowfs/core/layer.h"
#include "cowfs/store/cache.h"
#include "cowfs/store/store.h"

struct layers;

/*
 * Where promised bytes come from (cowfs/store/settle.h).  `keep` gets what a promise names into the
 * store, committed and reachable, waiting as long as that takes; from many threads at once.  -EIO
 * with a sentence if it is lost, -ESTALE if it names nothing any more.  NULL: all promises are lost.
 */
struct layers_source {
	int (*keep)(const struct object_id *promise, struct content *ret, void *ctx,
		    struct err *err);
	/*
	 * Read bytes of a promised file that need not be kept for that: how many, which is fewer only at
	 * the end of the file; or -EAGAIN: keep it.  NULL: keep all.
	 */
	ssize_t (*peek)(const struct object_id *promise, uint64_t off, void *data, size_t len,
			void *ctx);
	/*
	 * Have a promise kept as soon as possible.  1 if nothing can change meanwhile what it stands for; 0:
	 * something can, or it is kept already; -EIO, -ESTALE: as `keep`.  Does not wait.  NULL: 0.
	 */
	int (*hurry)(const struct object_id *promise, void *ctx);
	void *ctx;
};

struct layers_options {
	uint64_t
	    dirty_max; /* bytes; writers wait beyond; 0: an eighth of the machine's memory, at most 2 GiB */
	unsigned
	    quick_us; /* a load that is expected to take less is not left to another thread; 0: 150 */
	unsigned persist_ms; /* how long a change may stay in memory only; 0: 5000 */
	uint64_t
	    room_min; /* bytes that must stay free on the store's disk, else -ENOSPC; 0: 1 GiB, on a small disk a twentieth of it */
	uint64_t garbage_min; /* bytes that are worth a gc (sweep.c); 0: 64 MiB */
	uint64_t
	    partly_max; /* bytes of promised files that a clone may have changed (partly.c); 0: 1 GiB */
	unsigned sweep_ms;         /* how long an fsync waits for one, at most; 0: 10000 */
	struct cache_limits cache; /* 0: sensible ones */
	struct layers_source source;
};

/* The store, open for writing, must outlive them. */
NODISCARD int layers_new(struct store *s, const struct layers_options *options, struct layers **ret,
			 struct err *err);
void layers_free(struct layers *ls); /* every layer must be closed; NULL is fine */
DEFINE_CLEANUP(struct layers *, layers_free)

struct layers_stats {
	uint64_t dirty; /* bytes of file content not persisted */
	uint64_t nodes; /* in memory */
	uint64_t persists;
	uint64_t sweeps;      /* of garbage, ended */
	uint64_t store_waits; /* operations that had to read the store */
	uint64_t room_waits;  /* operations that had to wait for dirty memory */
	struct cache_stats cache;
};
void layers_stats(struct layers *ls, struct layers_stats *ret);

/* What is committed now is to survive power loss some seconds later. */
void layers_harden_soon(struct layers *ls);

/*
 * Something that took about so many bytes was removed from the store, so whoever found its disk full
 * may try again, and a gc may be worth its while.
 */
void layers_removed(struct layers *ls, uint64_t bytes);

/* The live view of a clone.  -ENOENT if there is no such clone, -EBUSY if it is open. */
NODISCARD int layer_open(struct layers *ls, const char *clone, struct layer **ret, struct err *err);

/*
 * A view of a root that belongs to no clone yet: all can be read, and nothing be changed
 * (-EROFS) or persisted.  A ref must reach the root; it stays in the store, whatever
 * becomes of that, until the warm clone is adopted or discarded, which is how one is closed.
 */
NODISCARD int layer_open_warm(struct layers *ls, const struct object_id *root, struct layer **ret,
			      struct err *err);

/*
 * It becomes the live view of that clone, with all that is in memory.  On failure it is still a
 * warm clone: -ENOENT, -EBUSY as layer_open(), -ESTALE if the clone does not have its root.
 */
NODISCARD int layer_adopt(struct layer *l, const char *clone, struct err *err);

/* Persist and close.  On failure it is still open. */
NODISCARD int layer_close(struct layer *l, struct err *err);

/*
 * Close without persisting: what was not persisted is lost.  For a clone that is being removed.
 * The memory of a large one in which nothing was changed is freed a moment later.
 */
void layer_discard(struct layer *l);
DEFINE_CLEANUP(struct layer *, layer_discard)
