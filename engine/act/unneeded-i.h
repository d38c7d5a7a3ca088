/*
 * unneeded-i.h - drop a lazy capture that is only for clones, when the last of these has gone.
 *
 * Otherwise the capture of a whole root for one run would continue for minutes after the run. Its
 * record (lazy.passing) and its snapshot go, and reading stops. It continues if a tag, another
 * clone or a snapshot of one still names its promises, and while a client that asked for it has yet
 * to ask for the clone.
 */
#pragma once

#include "base/err.h"
#include "cowfs/store/catalog-id.h"

struct clone;
struct host;
struct task;

/* The snapshot that was captured for a clone; zero if no capture is under way. */
struct catalog_id unneeded_of(struct host *h, const struct clone *c);

/* The clone is gone; zero: there is nothing to do.  A capture that cannot be ended goes on, with a warning. */
void unneeded_end(struct host *h, const struct catalog_id *captured);

/*
 * The same for a clone that could not be made of the snapshot `start`; zero: it was not found yet, and `from` (may be
 * NULL) names it.
 */
void unneeded_give_up(struct task *task, const struct catalog_id *start, const char *from);

/*
 * The client asks for a clone of the captured snapshot next, in a question of its own.  Until its connection
 * ends the capture goes on; then it ends like any other that has no clone.  On failure it has ended.
 */
NODISCARD int unneeded_await_clone(struct task *task, const struct catalog_id *captured,
				   struct err *err);

/* Those that a cowfsd before this one left, before promises_recover() goes on with the others. */
void unneeded_sweep(struct host *h);
