/*
 * persist-i.h - private to the core: shared by persisting and rolling back.
 */
#pragma once

#include "cowfs/core/layer-i.h"

struct persist {
	struct layer *l;
	enum batch_durability durability;
	layer_also_fn also; /* or NULL */
	void *ctx;
	bool looks;    /* nothing becomes of it: the clone stays at what was committed */
	bool unwaited; /* nobody waits for it */

	struct frozen *frozen;
	struct layer_state state; /* what was frozen */
	struct clone record;
};

/* Called and returning with the lock, which it lets go of meanwhile. */
NODISCARD int persist_run(struct persist *p, struct err *err);

/* layer_persist() in the background: no caller waits for it, and there is no `also`. */
NODISCARD int persist_aside(struct layer *l, struct err *err);
