/*
 * refusals-i.h - what a run wanted and did not get, as its record has it.
 */
#pragma once

#include "base/json.h"
#include "engine/api/run.h"

bool refusal_is_whole(const struct engine_refusal *r);

/* Takes what `one` owns, whether it fails or not.  -ENOMEM. */
NODISCARD int refusals_keep(struct engine_refusals *r, struct engine_refusal *one);

void refusals_set(struct json j, const struct engine_refusals *r);
NODISCARD int refusals_get(struct json j, struct engine_refusals *ret);
