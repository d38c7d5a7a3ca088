/*
 * refusals.h - prints the refusals of a run.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/run.h"

void refusals_set_json(struct json j, const struct engine_refusals *r);

/* On stderr, with the command that would have allowed it all. */
void refusals_print(const struct invocation *inv, const struct engine_run *run);

/*
 * On stderr: the command of this run with "--option value" too, in place of what it gave for
 * `without`, if any.
 */
void refusals_print_hint(const struct invocation *inv, const struct engine_run *run,
			 const struct hint_again *again);
