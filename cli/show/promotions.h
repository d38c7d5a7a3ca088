/*
 * promotions.h - prints a change of the project, for `promote` and `undo`.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/promote.h"

/* --- what `rebase` tells in the same words -------------------------------------------------- */

/* `why`: the name that the word on each goes by; NULL: there is none. */
void promotions_set_paths(struct json j, const char *key, const struct engine_rolled_path *list,
			  size_t n, const char *why);
/* Conflicts, held paths and warnings of a promotion that is yet to be decided. */
void promotions_print_obstacles(const struct invocation *inv, const struct engine_promotion *p);
/* The `checking` of engine_promote_options; `inv` is its context. */
void promotions_on_check(const char *command, const struct engine_run *run, void *inv);

/* "warnings", as the guard has them; and the same for people. */
void promotions_set_warnings(struct json j, const struct engine_rolled_path *list, size_t n);
void promotions_print_warnings(const struct invocation *inv, const struct engine_rolled_path *list,
			       size_t n);

void promotions_print_paths(const struct invocation *inv, const struct engine_rolled_path *list,
			    size_t n);
/*
 * The snapshot that holds the state before a rollback or a rebase, and what to type to return to
 * it: `undo` with a receipt, which only a project has, else `rollback`.  `clone` NULL: a project.
 */
void promotions_print_saved(const struct invocation *inv, const char *saved, const char *clone,
			    const char *receipt);

/* --- promote and undo ----------------------------------------------------------------------- */

/* The members of the answer; `ctx` is a struct engine_promotion, as fail_with() hands it on. */
void promotions_set_json(struct json j, const void *ctx);

/* Where to learn what became of one during which cowfsd died. */
void promotions_hint_lost(struct invocation *inv, int r);

/* The answer, or what stood in the way; the exit code, or a negative errno. */
NODISCARD int promotions_tell(struct invocation *inv, const struct engine_promotion *p,
			      struct err *err);
