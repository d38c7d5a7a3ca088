/*
 * usage.h - prints the resources that a run used over time.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/curve.h"

/* "usage": its samples. */
NODISCARD int usage_set_json(const struct invocation *inv, struct json j,
			     const struct engine_run *run, struct err *err);

/* A table, of no more rows than a person reads. */
NODISCARD int usage_print(const struct invocation *inv, const struct engine_run *run,
			  struct err *err);
