/*
 * overlaps.h - which clones of a project are at work on the same paths.
 *
 * Two clones overlap in a path that both changed since their own bases. Git's own files are left
 * out, as in a promotion. The look changes nothing and stops nobody.
 */
#pragma once

#include <stddef.h>

#include "engine/api/engine.h"
#include "snapshot/merge/merge.h"

struct engine_met {
	char *path; /* owned */
	enum merge_overlap overlap;
};

#define ENGINE_MET_MAX 1000 /* paths of two clones that are listed by name */

/* Two clones, and where they meet. */
struct engine_meeting {
	char *clone, *with; /* owned; `with` is the one that was asked about, if one was */
	/*
	 * What overlaps is judged from this base.  If the two have different ones it is the older, so that
	 * what the project did between the two counts as a change of the clone with the younger one.
	 */
	char base[ENGINE_ID_SIZE];
	bool bases_differ;
	uint64_t same, apart, overlap; /* paths */
	struct engine_met *met;        /* owned; by path */
	size_t n;
};

struct engine_overlaps {
	struct engine_meeting *list; /* owned; only those that meet */
	size_t n;
	uint64_t looked_at; /* other clones, or all if none was asked about */
};

void engine_meeting_done(struct engine_meeting *m);
void engine_overlaps_done(struct engine_overlaps *r);

/* Of a clone, or (NULL) of the one that holds the engine's directory, else all of the project with each other. */
NODISCARD int engine_overlaps(struct engine *e, const char *clone, struct engine_overlaps *ret,
			      struct err *err);
