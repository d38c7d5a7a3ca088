/*
 * survey-i.h - a project as it is now.
 *
 * Captured into a batch, at the cost of looking at every name and of reading what changed since
 * the last snapshot.  It is visible to nobody until the caller names its root in that batch, or
 * pins it, and commits.
 */
#pragma once

#include "engine/host-i.h"

struct survey {
	struct object_id root;
	uint64_t files, dirs, bytes;
};

/* The caller has the turn of the project's path. */
NODISCARD int survey_project(struct engine *e, const struct project *p, struct batch *b,
			     const struct engine_watch *watch, struct survey *ret, struct err *err);
