/*
 * compare-i.h - shared by the files behind compare.h.
 *
 *   base   which states are compared, and since when
 *   rows   the changes of each side, file by file
 *   warn   facts that a reader should look at first
 */
#pragma once

#include "base/map.h"
#include "engine/api/compare.h"
#include "engine/api/rules.h"
#include "engine/ask/ask-hold-i.h"
#include "snapshot/diff/delta.h"
#include "snapshot/text/guard.h"

struct comparing {
	struct engine *engine;
	struct store *store;
	const struct engine_compare_options *options;
	size_t n; /* sides */
	/* The sides, the base behind them, then the own bases of sides that have another. */
	struct hold hold;
	size_t own[ENGINE_COMPARE_MAX]; /* where in `hold`; 0: the common one */
	struct delta deltas[ENGINE_COMPARE_MAX];
	/* What a side has from the project alone, from before its own base; the keys are owned. */
	struct map inherited[ENGINE_COMPARE_MAX];
	struct map rows;                /* of result.files by path: index + 1 */
	const struct delta_file **file; /* owned; of each row and side; NULL: metadata, or none */
	const struct delta_note **note; /* likewise */
	size_t cap;                     /* of both, in rows */
	size_t patch_left;              /* bytes of patches that have room */
	struct engine_rules rules;
	struct guard *guard; /* owned; borrows `rules` */
	struct engine_compare result;
};

/* The base of the comparison as one that is held. */
static inline size_t comparing_base(const struct comparing *c)
{
	return c->n;
}

/* --- compare-base.c --------------------------------------------------------------------- */

/* Find and hold all states. */
NODISCARD int comparing_open(struct comparing *c, struct err *err);

/* --- compare-rows.c --------------------------------------------------------------------- */

/* Fill result.files and the counts of sides. */
NODISCARD int comparing_add_side(struct comparing *c, size_t side, struct err *err);

/* Which changes of a file are the same. */
void comparing_set_versions(struct comparing *c, size_t row);

/* --- compare-warn.c --------------------------------------------------------------------- */

/* Is this a file of tests, by its name? */
bool warn_is_test(const char *path);

/* Does a line of a test switch one off? */
bool warn_skips(const char *line, size_t len);

NODISCARD int warn_add(struct comparing *c, size_t side, const char *path, const char *rule,
		       const char *why, struct err *err);

/* Of a change by what it is: the guard's rules, tests that went. */
NODISCARD int warn_of_change(struct comparing *c, size_t side, const char *path, uint32_t mode,
			     char status, struct err *err);
