/*
 * run-perform.h - a run on another machine: its record, its log and its end are kept here, as for
 * any.
 */
#pragma once

#include "engine/api/run.h"

/* As engine_run(), by options->perform. */
NODISCARD int run_perform(struct engine *e, const struct engine_run_options *options,
			  struct engine_run *ret, struct err *err);
