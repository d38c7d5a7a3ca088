/*
 * experiment-plan.h - the options of `experiment`, and the plan that they make.
 */
#pragma once

#include "base/opt.h"
#include "cli/cmd.h"
#include "engine/api/experiment.h"

struct experiment_args {
	const char *name, *from, *score, *profile, *net, *keep, *html, *plan;
	const char *on, *remote, *creds, *signers, *sign;
	struct opt_list label;
	struct opt_list arm, arm_env, arm_profile, arm_base, arm_after, arm_file, matrix, exclude;
	struct opt_list check, env, pass_env, ro, within, allow, allow_missing;
	uint64_t repeat, rounds, jobs, stop_after;
	uint64_t mem, pids, time, disk, all_mem, all_time, all_disk, timeout, deadline;
	bool min, max, first_pass, promote_best, promote_compatible, steps, all, detach,
	    stop_losers, insecure, signed_only;
};

extern const struct opt experiment_plan_opts[];
void experiment_plan_preset(void *args);

/*
 * What the file (NULL: none) and the options ask for, which have the last word; *x is filled.  -EINVAL with a
 * sentence, or as engine_experiment_read().
 */
NODISCARD int experiment_plan_read(const struct invocation *inv, const char *file,
				   struct engine_experiment *x, struct err *err);
