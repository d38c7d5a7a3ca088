/*
 * resolve-i.h - resolutions of conflicts: kept with the clone, and used by merges.
 */
#pragma once

#include "engine/api/resolve.h"
#include "engine/find/resolve-set-i.h"
#include "engine/host/task-i.h"

/* engine_resolve(), done here: `file` is a name in the directory CONTROL_DIR of the store. */
NODISCARD int resolve_do(struct task *task, const struct engine_resolve_options *options,
			 struct err *err);

/*
 * merge_trees() with the resolutions, in a batch of its own that is then committed.  Resolving one
 * conflict may reveal another that has a resolution too, so it merges again while that helps.
 */
NODISCARD int resolve_merge(struct store *s, const struct object_id *base,
			    const struct object_id *ours, const struct object_id *theirs,
			    const struct merge_options *options, struct resolve_set *set,
			    struct merge *ret, struct err *err);

/* A promotion that was asked for in this way met conflicts. */
NODISCARD int resolve_remember(struct task *task, const struct clone *clone, const char *asked,
			       struct err *err);

/* Remove the resolutions that were used and have landed, and the remembered options. */
void resolve_used(struct task *task, const struct clone *clone, const struct resolve_set *used);

/* Remove all resolutions in the batch that removes the clone. */
NODISCARD int resolve_forget(struct store *s, struct batch *b, const char *clone, struct err *err);
