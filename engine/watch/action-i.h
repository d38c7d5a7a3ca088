/*
 * action-i.h - a firing whose action this process does.
 */
#pragma once

#include "engine/watch/watch-i.h"

struct action {
	struct engine *engine, *there;  /* ours; one in the project */
	const struct engine_rule *rule; /* NULL: it is gone */
	struct engine_firing *firing;
	struct docket_lock lock;
	bool counted;   /* what its run has used is part of the firing */
	int64_t cowfsd; /* when the one that has made the clone began; 0: not known */
};

/* Sign a failure: the same for failures that say the same, whatever numbers are in it.  `run` NULL: by `why`. */
void action_sign(struct engine_firing *f, const struct engine_run *run);

/* Tell the user, by a command of theirs, at most once. */
NODISCARD int action_notify(struct action *a, const struct engine_rules_of_watch *rules,
			    struct err *err);
