/*
 * clock.h - two clocks.
 *
 * The monotonic clock measures how long something takes: it counts from some moment in the past,
 * and nobody sets it. The wall clock counts from 1970, and may jump.
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_us(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000;
}

static inline uint64_t clock_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static inline int64_t clock_wall_ns(void)
{
	return (int64_t)clock_ns(CLOCK_REALTIME);
}
