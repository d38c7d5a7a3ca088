/*
 * run-plan.h - what a run sees and may use, put together from its options.
 *
 * It borrows the options and the stage, and owns the rest of what the spec points to.
 */
#pragma once

#include "engine/run/run-env.h"
#include "engine/run/run-git.h"
#include "engine/run/run-net.h"
#include "engine/run/run-publish.h"
#include "engine/run/run-secret.h"
#include "engine/run/run-terms.h"
#include "engine/run/run-view.h"

struct run_plan {
	struct sandbox_spec spec;
	struct run_terms terms;
	struct run_env env;
	struct run_net net;
	struct run_publish publish;
	struct run_secrets secrets;
	struct run_view view;
	char *git; /* owned, or NULL: settings that say who commits */
};

#define RUN_PLAN_INIT       \
	((struct run_plan){ \
	    .net = RUN_NET_INIT, .publish = RUN_PUBLISH_INIT, .view = RUN_VIEW_INIT })

void run_plan_done(struct run_plan *p);

/* Check what can be checked without a clone.  -EINVAL, -ENOTSUP or -ENOENT with a sentence. */
NODISCARD int run_plan_check(struct run_plan *p, struct engine *e,
			     const struct engine_run_options *o, struct err *err);

/* Prepare what every run sees of the host. */
NODISCARD int run_plan_begin(struct run_plan *p, const struct engine_run_options *o,
			     struct err *err);

/* Between the two: the command belongs to the trace of the caller, which becomes *ret; "": there is none. */
NODISCARD int run_plan_trace(struct run_plan *p, const char *run, char ret[TRACEPARENT_SIZE],
			     struct err *err);

/* Fill in the rest for this clone, and the project beside it. */
NODISCARD int run_plan_fill(struct run_plan *p, struct engine *e,
			    const struct engine_run_options *o, const struct stage *stage,
			    const struct run_project *project, struct sandbox_view *ret,
			    struct err *err);
