/*
 * others-i.h - whether programs are at work in clones, apart from the walkers in warm ones.
 *
 * It goes by the number of requests to mounts over a while. Pure: the caller counts, passes the
 * time, and locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OTHERS_LOOK_MS 100 /* between two looks; in between the last one counts */
#define OTHERS_BUSY    16  /* requests since the last look that make somebody at work */

struct others {
	uint64_t left;   /* requests of warm clones that are none any more, from when they were */
	uint64_t theirs; /* of all but warm clones, as of the last look, */
	uint64_t at;     /* and when that was, in ms */
	bool busy;
};

/* A warm clone that was asked so much is somebody's now, or gone. */
void others_left(struct others *o, uint64_t requests);

/* How many of `total` requests were neither asked of those `ours` nor before. */
uint64_t others_count(const struct others *o, uint64_t total, uint64_t ours);

/* `total` requests were answered so far, `ours` of them on those that are warm clones now. */
bool others_at_work(struct others *o, uint64_t total, uint64_t ours, uint64_t now);
