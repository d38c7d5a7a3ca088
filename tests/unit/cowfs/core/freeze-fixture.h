/*
 * freeze-fixture.h - for tests of persisting: what changes when all is frozen and put, and before
 * anything is committed.
 */
#pragma once

#include "tests/lib/live.h"

#define MIB ((uint64_t)1 << 20)

static const struct layer_call call = { .uid = 1000, .gid = 1000, .may_wait = true };

typedef void (*change_fn)(struct live *v);

struct between {
	struct live *v;
	change_fn change;
};

static inline int change_now(struct batch *b, const struct layer_state *state, void *ctx,
			     struct err *err)
{
	struct between *bt = ctx;

	bt->change(bt->v);
	return 0;
}

static inline void persist_and(struct live *v, change_fn change)
{
	struct between bt = { .v = v, .change = change };
	struct layer_state state;
	struct err err = { 0 };

	CHECK_OK(layer_persist(v->l, BATCH_SAFE, change_now, &bt, &state, &err), &err);
}

static inline void set_xattr(struct live *v, const char *path, const char *name, const char *value)
{
	uint64_t node = live_hold(v, path);

	CHECK_EQ(layer_setxattr(v->l, &call, node, name, value, strlen(value), 0, NULL), 0);
	live_drop(v, node);
}

static inline void remove_xattr(struct live *v, const char *path, const char *name)
{
	uint64_t node = live_hold(v, path);

	CHECK_EQ(layer_removexattr(v->l, &call, node, name, NULL), 0);
	live_drop(v, node);
}
