/*
 * alone-i.h - times are measured alone: one experiment of the store at a time, and other activity
 * is reported.
 */
#pragma once

#include "base/strlist.h"
#include "engine/experiment/experiment-i.h"

#define COMPANY_KIND "company" /* of a warning */

/* What gives the turn to measure; it ends when the descriptor is closed, by whatever end of the process. */
NODISCARD int turn_open(struct engine *e, int *ret, struct err *err);

/* Take it for the experiment of that name.  1: done; 0: `holder` has it, or ("") one whose name is not known yet. */
NODISCARD int turn_take(int fd, const char *name, char holder[ENGINE_ARM_PATH_SIZE],
			struct err *err);

/* 0 after so many milliseconds; -EINTR as soon as `stop_fd` (-1: none) can be read. */
NODISCARD int alone_pause(int stop_fd, int ms, struct err *err);

/* What else was at work while something was measured. */
struct company {
	struct strlist runs; /* owned; ids */
	uint64_t tasks;      /* of the machine, ready to run; the most that were seen */
};

void company_done(struct company *c);

/* Add what is at work now; `own` is the run that is measured. */
NODISCARD int company_look(const struct work *w, const char *own, struct company *c,
			   struct err *err);

/* Give the arm one warning about all of its rounds, or none. */
NODISCARD int company_warn(struct engine_arm *arm, struct err *err);
