/*
 * refusals.h - prints the refusals of a run.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/run.h"

void refusals_set_json(struct json j, const struct engine_refusals *r);

/* On stderr, with the option that would have allowed it all. */
void refusals_print(const struct engine_run *run);
