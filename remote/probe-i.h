/*
 * probe-i.h - private to the back ends: how a probe reports its findings.
 */
#pragma once

#include <time.h>

#include "base/clock.h"
#include "remote/depot.h"

struct probe {
	depot_tell_fn tell;
	void *ctx;
};

/* `fix` "": there is nothing to mend. */
void probe_tell(const struct probe *p, enum depot_level level, const char *name, const char *fix,
		const char *fmt, ...) PRINTF_LIKE(5, 6);

/* "clock": how far theirs, read between `before` and `after` of ours, is from it. */
void probe_clock(const struct probe *p, time_t theirs, time_t before, time_t after);
