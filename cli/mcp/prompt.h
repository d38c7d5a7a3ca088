/*
 * prompt.h - recipes that a person can start in a client: try three fixes, bisect, upgrade.
 */
#pragma once

#include "base/json.h"

void prompt_list(struct json list);

/*
 * Fill `result` with the recipe of that name for these arguments.  -EINVAL with a sentence if there
 * is none, or an argument is missing.
 */
NODISCARD int prompt_get(const char *name, struct json args, struct json result, struct err *err);
