/*
 * conflicts.h - how conflicts are shown, to people and as JSON: by promote, undo, rebase, resolve.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/promote.h"

/* Parse the words of --conflict and --markers; -EINVAL with a sentence for an unknown one. */
NODISCARD int conflicts_read_ways(const char *on_conflict, const char *style,
				  enum merge_on_conflict *ret, enum merge_style *ret_style,
				  struct err *err);

void conflicts_set_json(struct json j, const struct engine_conflict *list, size_t n);

/* With `clone` (or NULL), also print what to type to resolve each open conflict. */
void conflicts_print(const struct invocation *inv, FILE *out, const char *clone,
		     const struct engine_conflict *list, size_t n);

/* The first open conflict, which must exist, and how many are open. */
const struct engine_conflict *conflicts_first_open(const struct engine_conflict *list, size_t n,
						   size_t *ret_n);

/* Hint at how to show its sides: base, ours, theirs.  A note says what each is; NULL: no hint. */
void conflicts_hint_sides(struct invocation *inv, const struct engine_conflict *c,
			  const char *const notes[ENGINE_CONFLICT_SIDES]);

/* Say in `err` that nothing was done because of the open conflicts, of which there must be some. */
void conflicts_say_open(const char *act, const struct engine_conflict *list, size_t n,
			struct err *err);
