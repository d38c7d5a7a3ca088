/*
 * resolve-i.h - what was decided for conflicts: kept with the clone, and used by merges.
 */
#pragma once

#include "engine/api/resolve.h"
#include "engine/find/resolve-set-i.h"
#include "engine/host/task-i.h"

/* engine_resolve(), done here: `file` is a name in the directory CONTROL_DIR of the store. */
NODISCARD int resolve_do(struct task *task, const struct engine_resolve_options *options,
			 struct err *err);

/*
 * merge_trees() with what was decided, in a batch of its own that is then committed.  What is
 * decided for a conflict may let another one come up, for which something was decided too; so it is
 * merged again while that helps.
 */
NODISCARD int resolve_merge(struct store *s, const struct object_id *base,
			    const struct object_id *ours, const struct object_id *theirs,
			    const struct merge_options *options, struct resolve_set *set,
			    struct merge *ret, struct err *err);

/* A promotion that was asked for in this way met conflicts. */
NODISCARD int resolve_remember(struct task *task, const struct clone *clone, const char *asked,
			       struct err *err);

/* What was used has landed: it, and how that was asked for, are not needed any more. */
void resolve_used(struct task *task, const struct clone *clone, const struct resolve_set *used);

/* With the clone itself, in its batch. */
NODISCARD int resolve_forget(struct store *s, struct batch *b, const char *clone, struct err *err);
