/*
 * clock-i.h - elapsed time, even if somebody sets the clock or boots the machine.
 *
 * $SNAPCOW_CLOCK may name a file for tests that drive the time: nanoseconds since 1970, and perhaps
 * milliseconds since the boot and a name for that boot. Without these two, both clocks run alike.
 */
#pragma once

#include "engine/api/pipeline.h"

struct moment {
	int64_t wall; /* nanoseconds since 1970 */
	uint64_t ms;  /* since the boot, sleep included */
	char boot[ENGINE_BOOT_SIZE];
};

void clock_look(struct moment *ret);

/*
 * Milliseconds from one moment to a later one.  Within a boot only the clock counts that nobody can set; over a
 * boot there is but the other, and one that went back says nothing passed.
 */
uint64_t clock_between(const struct moment *from, const struct moment *to);
