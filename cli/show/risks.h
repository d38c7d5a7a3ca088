/*
 * risks.h - how risky a change is: by `policy explain`, `promote --dry-run`, `diff --risk` and experiments.
 */
#pragma once

#include "base/json.h"
#include "cli/cmd.h"
#include "engine/api/policy.h"

/* "risk: medium", then a line for each reason. */
void risks_print(const struct invocation *inv, const struct engine_facts *f);

/* "risk: medium (executable tool.sh, large)" */
void risks_print_line(const struct invocation *inv, const struct engine_facts *f);

/* The same before a patch: behind "#", which `git apply` skips. */
void risks_print_notes(const struct invocation *inv, const struct engine_facts *f);

/* "risk" and "reasons"; and the latter alone, into an array. */
void risks_set(struct json j, const struct engine_facts *f);
void risks_set_reasons(struct json list, const struct engine_facts *f);
