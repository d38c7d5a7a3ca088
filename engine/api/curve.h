/*
 * curve.h - the resources that a run used over time, in a bounded number of samples.
 *
 * When the samples are full, each pair becomes one, and from then on half as many are taken. A
 * merged sample has the highest memory and number of processes of its parts.
 */
#pragma once

#include "engine/api/run.h"

#define ENGINE_CURVE_MAX      120
#define ENGINE_CURVE_EVERY_MS 250 /* at first */

struct engine_sample {
	uint64_t at_ms;     /* since the run began */
	uint64_t cpu_ms;    /* processor time so far */
	uint64_t memory;    /* bytes */
	uint64_t written;   /* bytes so far */
	uint64_t processes; /* without the run's init */
};

struct engine_curve {
	struct engine_sample list[ENGINE_CURVE_MAX]; /* by time */
	size_t n;
	uint64_t
	    every_ms; /* between two samples; 0: ENGINE_CURVE_EVERY_MS, nothing was added yet */
};

void engine_curve_add(struct engine_curve *c, const struct engine_sample *s);

/* How many processors a sample's run used on average since the one before it; NULL: since the start. */
double engine_curve_processors(const struct engine_sample *before, const struct engine_sample *s);

/* As far as it is known: of a run that goes on, until now; of one that was lost, until then. */
NODISCARD int engine_run_curve(struct engine *e, const struct engine_run *run,
			       struct engine_curve *ret, struct err *err);
