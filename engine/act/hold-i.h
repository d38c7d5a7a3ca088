/*
 * hold-i.h - states that stay readable while somebody compares or shows them.
 *
 * A clone or a project goes on changing, and no ref names what it was a moment ago.  So cowfsd
 * makes a root of it and pins that until the connection ends; the command reads the store itself
 * meanwhile.
 */
#pragma once

#include "engine/find/engine-i.h"
#include "engine/wire/control-i.h"

/* As of one moment. */
struct held {
	struct object_id root;
	int64_t time;
};

#define HOLD_MAX 2

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

/* In cowfsd: until the connection ends. */
NODISCARD int hold_project(struct engine *e, const struct project *project,
			   const struct engine_watch *watch, struct held *ret, struct err *err);
NODISCARD int hold_clone(struct engine *e, const char *name, struct held *ret, struct err *err);

/* The same for any state by its name. */
NODISCARD int hold_state(struct engine *e, const char *text, const struct engine_watch *watch,
			 struct held *ret, struct err *err);
