/*
 * detach-i.h - a process that outlives the command that starts it.
 *
 * It is nobody's child and has a session of its own, so that no terminal and no shell ends it.
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"

struct engine;

/* Must not return. */
typedef void (*detach_fn)(void *ctx);

/*
 * Call `fn` in such a process.  The store of `e` (NULL: none) is closed here, too, because a database
 * must not be open in two processes; it is opened again when it is needed.
 */
NODISCARD int detach_process(struct engine *e, const char *what, detach_fn fn, void *ctx,
			     struct err *err);

/* A socket pair to that process; both ends close on exec. */
NODISCARD int detach_line(int ret[2], struct err *err);
