/*
 * stale-i.h - what changed by name: in a clone, and in its project meanwhile.
 *
 * The project is surveyed as it is now. If something cannot be compared, a warning says why and the
 * result is unknown; the rest of the status is still reported.
 */
#pragma once

#include "engine/api/clone.h"
#include "engine/host/task-i.h"
#include "snapshot/diff/changes.h"

/*
 * The names that differ between two roots, by path and bounded, and how many there are.  Where one may
 * name promises, the caller has called promises_stay() (promises-i.h) before it found them.
 */
NODISCARD int stale_compare(struct task *task, const struct object_id *from,
			    const struct object_id *to, struct engine_paths *ret,
			    struct changes *ret_counts, struct err *err);

/* How many there are alone; instead of that the caller may count once more if a capture has ended meanwhile. */
NODISCARD int stale_count(struct task *task, const struct object_id *from,
			  const struct object_id *to, struct changes *ret, struct err *err);

/* In cowfsd, who holds no turn. */
void stale_tell_clone(struct task *task, const struct project *project, const struct snapshot *base,
		      const struct engine_watch *watch, struct engine_clone *c);

/* Since the newest snapshot that `o` names. */
void stale_tell_project(struct task *task, const struct project *project,
			const struct engine_watch *watch, struct engine_overview *o);
