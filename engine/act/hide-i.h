/*
 * hide-i.h - keep which files of a clone its runs must not see.
 *
 * A run may move directories above a file that it does not see, so a later search may not find that by
 * its name.
 */
#pragma once

#include "engine/act/forget-i.h"
#include "engine/host/task-i.h"

/*
 * Once this has returned 0 the numbers survive the death of cowfsd.  A power loss that takes them also takes
 * whatever was written in the clone since.
 */
NODISCARD int hide_add(struct task *task, const char *clone, const struct hidden *more,
		       struct err *err);

/* A clone that gets a state of another clone, here or elsewhere, has the same files under the same numbers. */
NODISCARD int hide_inherit(struct store *s, struct batch *b, const struct snapshot *start,
			   const struct clone *clone, struct err *err);

/*
 * The clone goes, and so does its list: those of its snapshots that stay get it as their own.  1, and *err says
 * why: it is damaged and they get nothing.
 */
NODISCARD int hide_forget(struct store *s, struct batch *b, const struct clone *clone,
			  const struct forget *snapshots, struct err *err);
