/*
 * digest-i.h - SHA-256 of the changes from one tree to another (docs/design/promote.md).
 */
#pragma once

#include "base/err.h"
#include "cowfs/store/store.h"

struct plan;

/*
 * Sum up the files that apply will not write, because their bytes stay.  Done before anything is
 * touched, because they may be damaged.
 */
NODISCARD int digest_sum_rest(struct store *s, struct plan *plan, struct err *err);

/* In hex, of what the plan changes.  Reads what was not summed up. */
NODISCARD int digest_plan(struct store *s, const struct plan *plan, char hex[65], struct err *err);

/* In hex, of what the plan does, by the store's own names for contents: the same in no other.  Reads nothing. */
void digest_outline(const struct plan *plan, char hex[65]);

/* As digest_plan(), of all that differs between two roots, git's own folder left out.  1: nothing does. */
NODISCARD int digest_trees(struct store *s, const struct object_id *from,
			   const struct object_id *to, char hex[65], struct err *err);
