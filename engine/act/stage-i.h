/*
 * stage-i.h - a clone made ready for a run, and what the run did to it.
 *
 * What is staged hangs on the asking connection: whichever way that ends, by kill -9 too, the
 * run's limit of growth ends with it, and a clone that was made for the run is removed.
 */
#pragma once

#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

struct host;

NODISCARD int stage_begin(struct task *task, const struct stage_options *options, struct stage *ret,
			  struct err *err);

/* Of what this connection staged last; -ENOENT if that is nothing. */
NODISCARD int stage_end(struct task *task, struct stage_end *ret, struct err *err);

/* Of one that waits: it stays for good, or goes now.  -ENOENT if none does. */
NODISCARD int stage_settle(struct task *task, bool keep, struct err *err);

/* A clone that had a time to live has none any more. */
NODISCARD int stage_stay(struct task *task, const char *clone, struct err *err);

/* Remove the clones of runs of which nothing is left: their cowfsd died with them. */
void stage_sweep(struct host *h);
