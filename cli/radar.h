/*
 * radar.h - how it is told which clones are at work on the same paths.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/radar.h"

/* "others": each pair that meets. */
void radar_set_json(struct json j, const struct engine_radar *r);

void radar_print(const struct invocation *inv, const struct engine_radar *r, const char *clone);
