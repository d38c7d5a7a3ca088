/*
 * run-curve.h - records the resources that a run uses during its life.
 */
#pragma once

#include "engine/api/curve.h"
#include "engine/find/run-record.h"
#include "runner/sandbox.h"

struct run_curve {
	struct run_record *record; /* borrowed */
	struct engine_curve curve;
};

/* Have the run sampled, into its record. */
void run_curve_watch(struct run_curve *c, struct run_record *record, struct sandbox_spec *spec);

/* At the end: all samples, into run->curve. */
void run_curve_end(const struct run_curve *c, struct engine_run *run);
