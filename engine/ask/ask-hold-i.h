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
 * Hold the clone as it is now, with *ret its root, until `c` is done; and the names of its directories in
 * the mount as well, for `ms` at least and not much longer.  Renames of them wait, so be quick.
 */
NODISCARD int hold_ask_names(struct engine *e, const char *clone, uint64_t ms, struct control *c,
			     struct object_id *ret, struct err *err);

/*
 * Hold all states.  For a live state we ask cowfsd, and start it if need be.  For snapshots alone we
 * ask it only if it runs: otherwise nobody can remove them.
 */
NODISCARD int hold_open(struct engine *e, struct hold *h, const struct engine_watch *watch,
			struct err *err);
