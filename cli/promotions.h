/*
 * promotions.h - how a change of the project is told: of `promote` and of `undo`.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/promote.h"

/* The words of --conflict and --markers; -EINVAL with a sentence for another. */
NODISCARD int promotions_read_ways(const char *on_conflict, const char *style,
				   enum merge_on_conflict *ret, enum merge_style *ret_style,
				   struct err *err);

/* The answer, or what stood in the way; the exit code, or a negative errno. */
NODISCARD int promotions_tell(struct invocation *inv, const struct engine_promotion *p,
			      struct err *err);
