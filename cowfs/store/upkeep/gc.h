/*
 * gc.h - free what no ref and no pin (pin.h) reaches, in small steps beside everything else.
 *
 * gc_step() marks or sweeps a bounded number of objects, so the caller decides how long one step
 * may take. Batches that are open, begin or commit meanwhile lose nothing (batch.h has their duties
 * in return). Interrupted anywhere, even by kill -9, a gc has freed some garbage and nothing else;
 * the next gc starts afresh.
 *
 * A tree or recipe that cannot be read hides what it reaches: then nothing is swept and gc fails
 * with -EBADMSG.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/store.h"

struct gc;

enum gc_phase { GC_MARK, GC_SWEEP, GC_SHRINK, GC_DONE };

struct gc_progress {
	enum gc_phase phase;
	uint64_t marked;      /* objects found reachable so far */
	uint64_t swept;       /* objects removed, or in a trial those that would be */
	uint64_t swept_bytes; /* packed bytes they held */
};

/* -EBUSY if a gc or a check of this store is under way; -EROFS if the store is not open for writing. */
NODISCARD int gc_begin(struct store *s, struct gc **ret, struct err *err);

/*
 * A background gc: as soon as another thread wants a gc, a check or a repair, the steps of this one
 * fail with -ECANCELED, and that thread waits for its end.  So the stepping thread must not wait for
 * the other.
 */
NODISCARD int gc_begin_aside(struct store *s, struct gc **ret, struct err *err);

/*
 * A trial: as gc_begin(), but nothing is removed, and the refs for which `without` says so count
 * as gone.  What it tells in the end a gc would free if nothing else happened meanwhile.
 */
typedef bool (*gc_without_fn)(const struct ref *ref, void *ctx);
NODISCARD int gc_begin_trial(struct store *s, gc_without_fn without, void *ctx, struct gc **ret,
			     struct err *err);

void gc_end(struct gc *g); /* at any time; NULL is fine */
DEFINE_CLEANUP(struct gc *, gc_end)

/* Look at up to `budget` objects.  1: there is more to do.  0: done.  After a failure only gc_end(). */
NODISCARD int gc_step(struct gc *g, unsigned budget, struct gc_progress *ret, struct err *err);

/* How many have ended with nothing left to do since the store was opened. */
uint64_t gc_count(struct store *s);

/* All of it. */
NODISCARD int gc_run(struct store *s, struct gc_progress *ret, struct err *err);
