/*
 * compare.h - several states side by side: the changes of each since their common base.
 *
 * The base is the nearest state of the project that all sides descend from. A side whose own base
 * is younger counts only its own changes, not the project's between the two bases. Git's own folder
 * is counted and not listed, because a promotion leaves it alone.
 *
 * Nothing is written. Whether two sides would merge is found by the merge that a promotion does.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "engine/api/engine.h"
#include "engine/api/promote.h"

#define ENGINE_COMPARE_MAX 64 /* sides */

struct engine_compare_options {
	const char *const *sides; /* clones, snapshots, "." */
	size_t n;                 /* at least 2 */
	const char *base;         /* NULL: the one they share */
	bool patches;             /* the text of what changed, too */
	struct engine_watch watch;
};

struct engine_compare_side {
	char *name;                        /* owned; names the same from anywhere in the project */
	int64_t time;                      /* as of when, in nanoseconds since 1970 */
	char base[ENGINE_ID_SIZE];         /* its own; "": it is the project now */
	bool base_differs;                 /* from the base of the comparison */
	uint64_t added, modified, deleted; /* files */
	uint64_t lines_added, lines_removed;
	uint64_t git; /* paths in git's own folders */
};

/* What one side did to one file. */
struct engine_compare_change {
	char status; /* 'A', 'M', 'D', 'T' another type, 'm' metadata alone; 0: nothing */
	uint64_t added, removed; /* lines */
	bool binary;
	unsigned version; /* equal numbers of one file: the same content and mode; from 1 */
	struct buf patch; /* owned; if it was asked for; lines of hunks without headers */
	bool cut;         /* there was more */
};

enum engine_compare_overlap {
	ENGINE_COMPARE_ONE,      /* one side changed it */
	ENGINE_COMPARE_SAME,     /* all that changed it made the same of it */
	ENGINE_COMPARE_MERGES,   /* it can be put together */
	ENGINE_COMPARE_CONFLICT, /* two sides at least would conflict */
};

struct engine_compare_file {
	char *path;                            /* owned */
	struct engine_compare_change *changes; /* owned; one for each side */
	enum engine_compare_overlap overlap;
};

/* Two sides: in `conflicts` "ours" is a and "theirs" is b. */
struct engine_compare_pair {
	size_t a, b;
	uint64_t merged; /* texts that would be put together from both */
	struct engine_conflict *conflicts;
	size_t n_conflicts;
};

struct engine_compare_warning {
	size_t side;
	char *path; /* owned */
	char *rule; /* owned; of the guard, or "test-deleted", "test-skipped" */
	char *why;  /* owned */
};

struct engine_compare {
	char base[ENGINE_ID_SIZE]; /* "": the base that was given is no snapshot */
	char *base_name;           /* owned */
	int64_t base_time;
	struct engine_compare_side *sides; /* owned, as are the others */
	size_t n;
	struct engine_compare_file *files; /* by path */
	size_t n_files, cap_files;
	struct engine_compare_pair *pairs; /* each two sides */
	size_t n_pairs;
	struct engine_compare_warning *warnings;
	size_t n_warnings, cap_warnings;
	bool clean; /* no two sides conflict */
};

void engine_compare_done(struct engine_compare *c);

/* -EINVAL if the sides share no base, -ENOENT or -ENXIO if a state is none; with a sentence. */
NODISCARD int engine_compare(struct engine *e, const struct engine_compare_options *options,
			     struct engine_compare *ret, struct err *err);
