/*
 * bench-meter [N] - what it costs to count and time a request, as cowfsd does for each.
 *
 * Does so for N requests (5,000,000) five times, and prints one line of JSON: nanoseconds for one,
 * of the processor's time, of the best and the middle of the five.  One thread, so that nobody else
 * wants the counters.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cowfs/fuse/meter.h"

#define ROUNDS 5
#define KINDS  52 /* of requests, by the kernel's numbers */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 5000000;
	double ns[ROUNDS];

	if (n <= 0) {
		fprintf(stderr, "usage: bench-meter [N]\n");
		return 2;
	}
	for (int r = 0; r < ROUNDS; r++) {
		const uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);

		for (long i = 0; i < n; i++) {
			const uint64_t begin = now_ns(CLOCK_MONOTONIC);

			meter_count((uint32_t)(i % KINDS), now_ns(CLOCK_MONOTONIC) - begin);
		}
		ns[r] = (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / (double)n;
	}
	if (meter_total() != (uint64_t)n * ROUNDS) {
		fprintf(stderr, "bench-meter: not all of them were counted\n");
		return 1;
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), compare);
	printf("{\"best_ns\":%.1f,\"ns\":%.1f}\n", ns[0], ns[ROUNDS / 2]);
	return 0;
}
