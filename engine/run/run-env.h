/*
 * run-env.h - the environment of a run: variables passed on from the caller, variables of its
 * options, and secrets that nobody else may see.
 */
#pragma once

#include "engine/api/profile.h"
#include "engine/api/run.h"
#include "engine/run/scrub.h"

struct run_env {
	struct strlist words; /* NAME=VALUE, each name once */
	char *home;           /* owned; where an empty directory is to be */
	struct scrub secrets;
};

void run_env_done(struct run_env *e);

/*
 * With `ours`, `git` and `tls` (NAME=VALUE) unless the profile or the options say otherwise.  -EINVAL or
 * -ENOENT with a sentence.
 */
NODISCARD int run_env_build(struct run_env *e, const struct engine_run_options *o,
			    const struct engine_profile *profile, struct engine_list ours,
			    struct engine_list git, struct engine_list tls, struct err *err);

/*
 * If the caller belongs to a trace, so does the command, as a child of the run: *ret is the caller's
 * TRACEPARENT, and the command gets one with the run's span, unless the environment has one by now.
 */
NODISCARD int run_env_trace(struct run_env *e, const char *run, char ret[TRACEPARENT_SIZE],
			    struct err *err);
