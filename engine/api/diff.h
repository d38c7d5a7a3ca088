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

/* How a root of a distribution changed, in the words of somebody who administers one. */
enum engine_distro_kind {
	ENGINE_USER,
	ENGINE_GROUP,
	ENGINE_SERVICE, /* a unit or an init script */
	ENGINE_CONFIG,  /* a file of dpkg's configuration files, or below etc/ */
	ENGINE_FILE,    /* one that no package, program or service accounts for */
};

struct engine_distro_change {
	enum engine_distro_kind kind;
	enum delta_status status;
	const char *name;         /* of a user, group or unit; NULL: of a file */
	const char *path;         /* of a unit or a file, from the top */
	uint32_t id, group;       /* of a user or group, as it is now, or was */
	const char *home, *shell; /* of a user; else NULL */
	const char *members;      /* of a group, by comma; else NULL */
	const char *package;      /* that a file is the configuration of; NULL: somebody made it */
	bool shipped;             /* it is just what the package brings */
};

struct engine_package {
	const char *name;
	const char *before, *after; /* versions; NULL: it was not there, or is not any more */
	bool automatic;             /* apt installed it for another one */
};

/* The changed files of a distribution, counted by what they are. */
struct engine_parts {
	uint64_t package, configuration, derived, state, other;
};

/*
 * Where the answer goes, in this order: the two states with all that differs, then of each file the
 * text of its patch, if `text` is not NULL, and its counts (of nothing, if they are not wanted).
 * A negative answer ends it and is returned.
 */
struct engine_diff_sink {
	/* NULL: not wanted. */
	int (*begin)(const struct engine_state *from, const struct engine_state *to,
		     const struct delta *delta, void *ctx, struct err *err);
	/*
	 * If their dpkg databases differ, each package that came (`before` NULL), went (`after` NULL) or changed
	 * its version, and at the end a call with NULL; before all texts.  NULL: not wanted.
	 */
	int (*package)(const struct engine_package *p, void *ctx, struct err *err);
	/* Instead of any package, if one side alone has a database with packages; NULL: not wanted. */
	int (*database)(bool came, void *ctx, struct err *err);
	/*
	 * If both are roots of a distribution: users, groups, services, files that changed in it, each kind by
	 * name, and at the end a call with NULL and the counts.  Behind the packages.  NULL: not wanted.
	 */
	int (*change)(const struct engine_distro_change *c, const struct engine_parts *parts,
		      void *ctx, struct err *err);
	bool (*wants)(const struct delta_file *f, void *ctx); /* the text of this; NULL: of all */
	patch_fn text;
	int (*file)(const struct delta_file *f, const struct patch_counts *counts, void *ctx,
		    struct err *err); /* NULL: not wanted */
	void *ctx;
};

/* -ENOENT, -EINVAL or -ENXIO with a sentence if a state is none. */
NODISCARD int engine_diff(struct engine *e, const struct engine_diff_options *options,
			  const struct engine_diff_sink *sink, struct err *err);
