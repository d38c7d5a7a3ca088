/*
 * run-snapshot.h - snapshots of its own clone that a command in a run asks for.
 *
 * The run asks by a system call that its filter passes on to us (SANDBOX_ASK_SNAPSHOT); we take the
 * snapshot as for any caller, and answer with its id. Each is labelled run=ID. The profile limits
 * the number of attempts, so the snapshots keep at most that many times the growth that the clone
 * may have.
 *
 * The run's limits hold meanwhile: nothing here waits for cowfsd.
 */
#pragma once

#include "engine/api/run.h"
#include "runner/sandbox.h"

struct run_snapshots_options {
	struct engine *engine;
	const struct engine_run *run;
	uint64_t most; /* 0: none */
};

/* Let the run of `spec` take some; all that is passed is borrowed.  *ret is NULL for none. */
struct run_snapshots;
NODISCARD int run_snapshots_open(const struct run_snapshots_options *options,
				 struct sandbox_spec *spec, struct run_snapshots **ret,
				 struct err *err);
void run_snapshots_close(struct run_snapshots *s); /* NULL is fine */

static inline void run_snapshots_close_p(struct run_snapshots **s)
{
	run_snapshots_close(*s);
}
