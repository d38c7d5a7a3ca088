/*
 * run-snapshot.h - snapshots that a command in a run asks for, of its own clone.
 *
 * The run asks by a system call that its filter passes on to us (SANDBOX_ASK_SNAPSHOT); we take the
 * snapshot as anybody would, and answer with its id.  Each is labelled run=ID.  As many as the profile
 * says are tried, so what they keep is at most that many times the growth that the clone may have.
 */
#pragma once

#include "engine/api/run.h"
#include "runner/sandbox.h"

struct run_snapshots {
	struct engine *engine;
	const struct engine_run *run; /* borrowed */
	uint64_t most, tried;
};

/* Let the run of `spec` take `most` of them; 0: none. */
void run_snapshots_allow(struct run_snapshots *s, struct sandbox_spec *spec);
