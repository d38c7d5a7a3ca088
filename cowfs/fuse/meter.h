/*
 * meter.h - how many requests of each kind this process answered, and how long they took.
 *
 * The counts are for all mounts of the process together. Counting costs two readings of the clock
 * and three relaxed additions; a reader may see a request counted and not yet timed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Upper bounds of the time that a request took, in nanoseconds; the last one has none. */
#define METER_BUCKETS 7
extern const uint64_t meter_bounds[METER_BUCKETS - 1];

struct meter_row {
	const char *op; /* "lookup", "write", ...; "other" */
	uint64_t count;
	uint64_t sum_ns;
	uint64_t buckets[METER_BUCKETS]; /* each alone, not with those below it */
};

#define METER_ROWS_MAX 64

/* The kinds of which there was one. */
size_t meter_read(struct meter_row ret[METER_ROWS_MAX]);

/* All requests so far, of every kind: a reader that asks twice knows whether mounts are in use. */
uint64_t meter_total(void);

/* A request was answered; `op` is the kernel's number for its kind. */
void meter_count(uint32_t op, uint64_t ns);
