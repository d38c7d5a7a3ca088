/*
 * refusals.h - prints what a run wanted and did not get.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/run.h"

void refusals_set_json(struct json j, const struct engine_refusals *r);

/* On stderr, with the option that would have allowed it all. */
void refusals_print(const struct engine_run *run);
