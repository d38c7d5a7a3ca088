/*
 * diff.h - what differs between any two states: snapshots, clones now, the project now.
 */
#pragma once

#include "engine/api/engine.h"
#include "snapshot/diff/delta.h"
#include "snapshot/patch/patch.h"

/* One of the two that are compared. */
struct engine_state {
	const char *name; /* a snapshot's id, a clone's name, or "." */
	int64_t time;     /* as of when, in nanoseconds since 1970 */
};

struct engine_diff_options {
	/*
	 * States.  None: from the base of the clone that holds the engine's directory to that clone
	 * now, else from the project's newest snapshot to the project now.  One that is a clone: from
	 * its base to it.  One that is a snapshot: from that to the clone or project here.
	 */
	const char *a, *b;
	const char *const
	    *paths;     /* from the engine's directory if that is in it, else from the top */
	size_t n_paths; /* 0: all */
	bool no_renames;
	bool count;       /* lines of each file; without it nothing is read but for similar files */
	unsigned context; /* lines around a change */
	struct engine_watch watch;
};

/*
 * Where the answer goes, in this order: the two states with all that differs, then of each file the
 * text of its patch, if `text` is not NULL, and its counts (of nothing, if they are not wanted).
 * A negative answer ends it and is returned.
 */
struct engine_diff_sink {
	int (*begin)(const struct engine_state *from, const struct engine_state *to,
		     const struct delta *delta, void *ctx, struct err *err);
	/*
	 * If their dpkg databases differ, each package that came (`before` NULL), went (`after` NULL) or changed
	 * its version, and at the end a call without a name; before all texts.  NULL: not wanted.
	 */
	int (*package)(const char *name, const char *before, const char *after, void *ctx,
		       struct err *err);
	patch_fn text;
	int (*file)(const struct delta_file *f, const struct patch_counts *counts, void *ctx,
		    struct err *err);
	void *ctx;
};

/* -ENOENT, -EINVAL or -ENXIO with a sentence if a state is none. */
NODISCARD int engine_diff(struct engine *e, const struct engine_diff_options *options,
			  const struct engine_diff_sink *sink, struct err *err);
