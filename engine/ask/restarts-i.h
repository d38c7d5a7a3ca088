/*
 * restarts-i.h - how often a cowfsd that keeps dying is started again.
 *
 * There are two bounds. Several deaths in a row soon after the start: something kills it each time.
 * Many deaths within an hour, however long each lived: otherwise it would go on for ever, and each
 * death may lose the last seconds of writes to a clone.
 */
#pragma once

#include <stdint.h>

#define RESTARTS_QUICK_MS  10000   /* one that lived for less died quickly, */
#define RESTARTS_QUICK_MAX 5       /* and after so many in a row there is no other */
#define RESTARTS_SPAN_MS   3600000 /* nor after */
#define RESTARTS_SPAN_MAX  12      /* deaths within that time */

struct restarts {
	unsigned quick;                   /* quick deaths in a row */
	unsigned n;                       /* deaths in all */
	uint64_t died[RESTARTS_SPAN_MAX]; /* ms; the latest of them, a ring */
};

enum restarts_verdict {
	RESTARTS_AGAIN,
	RESTARTS_TOO_QUICK,
	RESTARTS_TOO_MANY,
};

/* One died: is there to be another? */
enum restarts_verdict restarts_judge(struct restarts *r, uint64_t born_ms, uint64_t died_ms);

/* How long to wait before it.  Not at all before the first: programs wait for their mounts. */
uint64_t restarts_pause_ms(const struct restarts *r);
