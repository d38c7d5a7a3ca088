/*
 * overlaps.h - show which clones work on the same paths.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/overlaps.h"

/* "others": each pair that meets. */
void overlaps_set_json(struct json j, const struct engine_overlaps *r);

void overlaps_print(const struct invocation *inv, const struct engine_overlaps *r,
		    const char *clone);
