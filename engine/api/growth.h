/*
 * growth.h - the size of a store over time, in samples since it was made.
 *
 * The daemon notes it while it runs, at most once a minute, after each gc and when it ends.  The older
 * the rows, the fewer of them are kept.
 */
#pragma once

#include "engine/api/engine.h"

#define ENGINE_GROWTH_MAX 400 /* rows */

struct engine_growth_row {
	int64_t time;     /* nanoseconds since 1970 */
	uint64_t logical; /* bytes that all snapshots and clones show together */
	uint64_t disk;    /* what the store's files take */
	uint64_t used;    /* of that, what holds something */
	bool judged;      /* a gc has looked, and what follows is known */
	uint64_t garbage; /* packed bytes that nothing needed */
};

struct engine_growth {
	struct engine_growth_row list[ENGINE_GROWTH_MAX]; /* by time */
	size_t n;
};

/* Nothing noted yet is no failure. */
NODISCARD int engine_growth(struct engine *e, struct engine_growth *ret, struct err *err);
