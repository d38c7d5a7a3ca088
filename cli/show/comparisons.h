/*
 * comparisons.h - several states side by side, for people and for programs.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/compare.h"

/* Of the text of what changed, which the comparison has or has not. */
enum comparisons_hunks {
	COMPARISONS_NO_HUNKS,
	COMPARISONS_CONFLICTS, /* places that conflict */
	COMPARISONS_ALL_HUNKS, /* and the hunks of each side in files of which they made different things */
};

/* The members of an object. */
void comparisons_set_json(struct json j, const struct engine_compare *c, bool hunks);

/* A table of files, which pairs would merge, where they conflict, and warnings; through a pager. */
NODISCARD int comparisons_print(const struct invocation *inv, const struct engine_compare *c,
				enum comparisons_hunks hunks, struct err *err);

/* "one", "same", "merges", "conflict". */
const char *comparisons_overlap(enum engine_compare_overlap overlap);
