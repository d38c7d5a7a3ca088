/*
 * stage-i.h - a clone made ready for a run, and the changes that the run made in it.
 *
 * A staged clone lives as long as the client's connection: however that ends, even by kill -9, the
 * run's limit on growth ends with it, and a clone that was made for the run is removed.
 */
#pragma once

#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"

struct host;

NODISCARD int stage_begin(struct task *task, const struct stage_options *options, struct stage *ret,
			  struct err *err);

/* Serve what this connection staged last through `fd`, which it takes: the run's own mount of it. */
NODISCARD int stage_root(struct task *task, int fd, const struct stage_root *how, struct err *err);

/* End what this connection staged last; -ENOENT if there is nothing. */
NODISCARD int stage_end(struct task *task, struct stage_end *ret, struct err *err);

/* Keep or remove the clone that waits for a decision; -ENOENT if none does. */
NODISCARD int stage_settle(struct task *task, bool keep, struct err *err);

/* Keep a clone that had an expiry. */
NODISCARD int stage_stay(struct task *task, const char *clone, struct err *err);

/* Remove the clones of dead runs whose cowfsd died with them. */
void stage_sweep(struct host *h);
