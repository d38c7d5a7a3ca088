/*
 * run-refusal.h - what a run wanted and did not get: gathered, the same thing once.
 *
 * What it asked for is of its own choice, so secrets are taken out of every word of it, and of
 * different things no more than a bounded number is kept.
 */
#pragma once

#include "engine/api/run.h"
#include "engine/run/scrub.h"

#define RUN_REFUSALS_MAX 64

/* All strings are borrowed; `flag` is "" if nothing would allow it.  -ENOMEM. */
NODISCARD int run_refusals_add(struct engine_refusals *r, const struct scrub *secrets,
			       const struct engine_refusal *refusal);

/* A sandbox_refused_fn; `ctx` is the struct. */
void run_refusals_take_call(void *ctx, const char *call, const uint64_t args[6]);
