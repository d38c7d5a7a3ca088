/*
 * clones.h - how clones look: to people, and to programs.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/clone.h"

/* Its members, as `clone`, `list` and `status` have them in common. */
void clones_set_json(struct json j, const struct engine_clone *c);

/* "own": what is stored for it alone; null if that is not known. */
void clones_set_own(struct json j, const struct engine_clone *c);

/* 1: what --durability says is full, 0: fast; `preset` is what it is if nothing was said. */
NODISCARD int clones_durability(const char *given, bool preset, struct err *err);

/* " by USER (agent:NAME)", as far as it is known. */
void clones_print_maker(FILE *out, const struct engine_clone *c);

/* "3 added, 1 deleted", "nothing", or that it is not known. */
void clones_print_changes(FILE *out, const struct engine_clone *c);

/* So many bytes are read in the background; `clone` or, if it is NULL, the project says how far that is.  0: nothing. */
void clones_print_reading(FILE *out, const char *clone, uint64_t bytes, const char *end);

/* "in 2h", "never", "now, once nobody uses it". */
#define CLONES_EXPIRY_MAX 64
char *clones_expiry(const struct engine_clone *c, char text[CLONES_EXPIRY_MAX]);

/* What helps if a verb on a clone failed with `r`; `forced` is what would do it by force. */
void clones_hint(struct invocation *inv, int r, const char *forced, const char *clone);
