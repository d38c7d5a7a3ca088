/*
 * steps.h - snapshots that hooks took of an agent's steps (agents/hook.h): listed, and gone back to.
 */
#pragma once

#include <stdint.h>

#include "cli/cmd.h"
#include "engine/api/history.h"

/* Keep only those, of one client or of all (NULL). */
void steps_keep(struct engine_history *h, const char *client);

/* A table, newest first. */
void steps_print(const struct invocation *inv, const struct engine_history *h, size_t n);

/*
 * The state before a turn of a session: the project's or a clone's newest session if `session` is NULL,
 * of which the beginning is enough.  -ENOENT with a sentence.
 */
NODISCARD int steps_find_turn(struct engine *e, const char *clone, const char *session,
			      uint64_t turn, char ret_id[ENGINE_ID_SIZE], struct err *err);
