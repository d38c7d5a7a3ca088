/*
 * sample.h - what a run uses at the moment, from its cgroups and from /proc.
 */
#pragma once

#include "runner/sandbox-i.h"

struct sampler {
	uint64_t next_ms;           /* when the next sample is due; 0: never */
	struct sandbox_sample last; /* what counts up must not fall */
};

/* The walls stand: the first sample is due SANDBOX_SAMPLE_MS after `begun`. */
void sampler_begin(struct sampler *s, const struct run *run, uint64_t begun_ms);

/* Take the sample that is due at `now_ms`, if one is, and set the time of the next. */
void sampler_look(struct sampler *s, const struct run *run, uint64_t begun_ms, uint64_t now_ms);
