/*
 * gc-fixture.h - what the tests of gc share: every step checked, on one line.
 */
#pragma once

#include "cowfs/store/upkeep/gc.h"
#include "tests/lib/stock.h"

static inline struct gc *begin_gc(struct store *s)
{
	struct gc *g = NULL;
	struct err err = { 0 };

	CHECK_OK(gc_begin(s, &g, &err), &err);
	return g;
}

/* One step; is there more to do? */
static inline bool step(struct gc *g, unsigned budget, struct gc_progress *ret)
{
	struct err err = { 0 };
	int r = gc_step(g, budget, ret, &err);

	CHECK_OK(r, &err);
	CHECK_EQ(r == 0, ret->phase == GC_DONE);
	return r > 0;
}

static inline void finish_gc(struct gc *g)
{
	struct gc_progress p;

	while (step(g, 1, &p))
		;
	gc_end(g);
}

/* Rows that no ref reaches: a root with this text. */
static inline struct object_id leave_garbage(struct store *s, const char *text)
{
	const struct object_id root = stock_snapshot(s, "garbage", text);

	stock_drop(s, "garbage");
	return root;
}
