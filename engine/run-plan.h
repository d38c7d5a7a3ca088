/*
 * run-plan.h - what a run sees and may use, put together from what was asked for.
 *
 * It borrows the options and the stage, and owns the rest of what the spec points to.
 */
#pragma once

#include "engine/engine-i.h"
#include "engine/run.h"
#include "engine/scrub.h"
#include "engine/stage-i.h"
#include "runner/layout.h"

struct run_plan {
	struct sandbox_spec spec;
	struct layout *layout;
	struct engine_strings env; /* NAME=VALUE; its list ends with NULL */
	char *cwd, *home;
	struct scrub secrets;
	int clone_fd; /* open as long as the run: who unmounts the clone is told that it is in use */
};

#define RUN_PLAN_INIT ((struct run_plan){ .clone_fd = -1 })

void run_plan_done(struct run_plan *p);

/* What can be told before there is a clone: -EINVAL, -ENOTSUP or -ENOENT with a sentence. */
NODISCARD int run_plan_check(struct run_plan *p, const struct engine_run_options *o,
			     struct err *err);

/* The rest, for this clone. */
NODISCARD int run_plan_fill(struct run_plan *p, struct engine *e,
			    const struct engine_run_options *o, const struct stage *stage,
			    struct err *err);
