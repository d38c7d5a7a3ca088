/*
 * run-asked.h - the options of a run, as its record keeps them, so that a replay grants no more.
 */
#pragma once

#include "engine/api/run.h"

/* The id that the caller chose, or a new one. */
NODISCARD int run_asked_id(const struct engine_run_options *o, char ret[ENGINE_RUN_ID_SIZE],
			   struct err *err);

/* Names of variables without their values, and paths from `dir`. */
NODISCARD int run_asked_fill(struct engine_asked *a, const struct engine_run_options *o,
			     const char *dir, struct err *err);
