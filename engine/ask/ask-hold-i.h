/*
 * ask-hold-i.h - states that stay readable while the command compares or shows them.
 *
 * cowfsd pins them until the connection ends (engine/act/hold-i.h).
 */
#pragma once

#include "engine/find/engine-i.h"
#include "engine/wire/control-i.h"
#include "engine/wire/wire-i.h"

struct hold {
	struct state states[HOLD_MAX]; /* to be filled before hold_open() */
	size_t n;
	struct held held[HOLD_MAX];
	struct control
	    control; /* that they hang on; closed: they are snapshots, and no cowfsd runs */
};

#define HOLD_INIT ((struct hold){ .control = CONTROL_INIT })

void hold_done(struct hold *h);

/*
 * Hold all states.  What is live is asked of cowfsd, starting it if need be.  Of snapshots alone
 * only one that runs is asked: without one nobody can take them away.
 */
NODISCARD int hold_open(struct engine *e, struct hold *h, const struct engine_watch *watch,
			struct err *err);
