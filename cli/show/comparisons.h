/*
 * comparisons.h - several states side by side, for people and for programs.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/compare.h"

/* The members of an object. */
void comparisons_set_json(struct json j, const struct engine_compare *c);

/* A table of files, which pairs would merge, where they conflict, and warnings; through a pager. */
NODISCARD int comparisons_print(const struct invocation *inv, const struct engine_compare *c,
				bool hunks, struct err *err);

/* "one", "same", "merges", "conflict". */
const char *comparisons_overlap(enum engine_compare_overlap overlap);
