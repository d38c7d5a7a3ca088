/*
 * risks.h - how risky a change is, for people: by `policy explain` and `promote --dry-run`.
 */
#pragma once

#include "cli/cmd.h"
#include "engine/api/policy.h"

/* "risk: medium", then a line for each reason. */
void risks_print(const struct invocation *inv, const struct engine_facts *f);
