/*
 * action-i.h - a firing whose action this process carries out.
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

/* --- action-command.c ---------------------------------------------------------------------- */

/* Run the rule's command on the action's clone, and note in the firing how it ended. */
NODISCARD int action_run_command(struct action *a, struct err *err);

/* --- foresee.c ----------------------------------------------------------------------------- */

/* Where the change that the action has made would come to. */
NODISCARD int foresee(struct action *a, struct engine_watch_test *t, struct err *err);

/* --- notify.c ------------------------------------------------------------------------------ */

/* What there is to tell of a firing. */
struct news {
	const char *result; /* its own, or where its change stands */
	const char *stage;  /* of the change, or NULL */
	char *why;          /* owned; a sentence, or NULL */
	char *key;          /* owned; names it: in a firing it says that this was sent */
};

/* Tell the user, by the means that the rules name. */
NODISCARD int notify(const struct engine_firing *f, const struct news *n,
		     const struct engine_rules_of_watch *rules, struct err *err);

/* --- news.c -------------------------------------------------------------------------------- */

/* Tell what is new of a firing that is locked, at most once. */
NODISCARD int action_tell(struct engine *e, const struct docket_lock *lock, struct engine_firing *f,
			  const struct engine_rules_of_watch *rules, struct err *err);
