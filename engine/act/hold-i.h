/*
 * hold-i.h - states that stay readable while a command compares or shows them.
 *
 * A clone or a project keeps changing, and no ref names its state of a moment ago. So cowfsd makes
 * a root of it and pins that until the connection ends; the command reads the store itself
 * meanwhile (engine/ask/ask-hold-i.h).
 */
#pragma once

#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

/*
 * Pin the tree of a snapshot that was found.  -ENOENT if it was removed meanwhile: a gc may have come first.
 * The caller unpins it.
 */
NODISCARD int hold_tree(struct store *s, const struct snapshot *of, struct err *err);

/* Until the connection ends. */
NODISCARD int hold_project(struct task *task, const struct project *project,
			   const struct engine_watch *watch, struct held *ret, struct err *err);
NODISCARD int hold_clone(struct task *task, const char *name, struct held *ret, struct err *err);
NODISCARD int hold_in_turn(struct task *task, const char *name, struct held *ret,
			   struct err *err); /* the same for a caller that has the clone's turn */

/*
 * The same, and no directory of the clone is moved until the connection ends or `ms`, HOLD_NAMES_MS at most,
 * have passed: what is found in the state is found in the mount too.  The clone must be mounted.
 */
NODISCARD int hold_names(struct task *task, const char *name, uint64_t ms, struct held *ret,
			 struct err *err);

/* The same for any state by its name. */
NODISCARD int hold_state(struct task *task, const char *text, const struct engine_watch *watch,
			 struct held *ret, struct err *err);
