/*
 * strays-i.h - files `.git` in a stored state that lead out of it.
 *
 * A capture finds them during its walk. A snapshot has no list of them, so its directories are
 * walked: otherwise commits below such a file, in a clone of the snapshot, would reach the real
 * repository.
 */
#pragma once

#include "engine/api/clone.h"
#include "engine/api/history.h"
#include "engine/host/task-i.h"
#include "snapshot/capture/capture.h"

/* Add those below the top of the tree to told->strays.  `project` is its path. */
NODISCARD int strays_find(struct task *task, const struct object_id *root, const char *project,
			  struct engine_clones *told, struct err *err);

/* The same of what was just captured, with files `.git` known; takes their paths from it. */
NODISCARD int strays_tell(struct task *task, struct captured *captured, const char *project,
			  struct engine_taken *ret, struct err *err);

/*
 * -ECANCELED if there is one: with a part no repository is copied, so what git does in the clone would
 * change the real ones.
 */
NODISCARD int strays_refuse(const struct engine_clones *told, struct err *err);
