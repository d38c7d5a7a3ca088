/*
 * deliver-i.h - a promotion to a directory outside of every project: `promote --path P --to DIR`.
 *
 * Each path of the clone arrives in DIR under its own last name. Only these names of DIR are
 * captured, so its size does not matter. The base of the merge is the file that a promotion last
 * put under a name, if that was not undone: a file that somebody else put there, or changed since,
 * is a conflict.
 */
#pragma once

#include "engine/act/promoting-i.h"

/* Does this promotion, or what this undo takes back, change a directory that is no project? */
bool deliver_is(const struct promoting *p);

/*
 * Find the target and the names in it, for options->asked->to or for the undo of such a promotion.
 * Does nothing for any other.  A refusal has a sentence.
 */
NODISCARD int deliver_find(struct promoting *p, struct err *err);

/* Once the target is captured: the trees to merge.  They are pinned by `p`. */
NODISCARD int deliver_trees(struct promoting *p, struct err *err);

/* What the landing must know of it; the first promotion to a target registers it. */
NODISCARD int deliver_act(struct promoting *p, struct landing_act *act, struct err *err);
