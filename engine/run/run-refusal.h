/*
 * run-refusal.h - collects what a run wanted and did not get, each thing once.
 *
 * The run chooses its requests, so every word is scrubbed of secrets, and the number of different
 * things is bounded.
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
