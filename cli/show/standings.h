/*
 * standings.h - how each arm of an experiment relates to the others, to the project now, and to the
 * rules.
 *
 * Arms whose clones still exist are merged with each other and with the project, as in a promotion.
 * For the others only the paths in the record are compared.
 */
#pragma once

#include "cli/out.h"
#include "engine/api/compare.h"
#include "engine/api/experiment.h"
#include "engine/api/policy.h"

#define STANDINGS_MAX 15 /* arms that are merged with each other; and the project */

struct standing {
	bool merged;               /* it is a side of the comparison, */
	size_t side;               /* this one */
	bool judged;               /* the facts are known */
	struct engine_facts facts; /* owned */
};

struct standings {
	const struct engine_experiment *x;
	struct standing *list; /* owned; one for each arm */
	size_t n_merged;
	struct engine_compare
	    compare; /* owned; the last side is the project; sides have names of arms */
};

void standings_done(struct standings *s);

/* With `patches` the comparison has the text of what changed. */
NODISCARD int standings_find(const struct invocation *inv, const struct engine_experiment *x,
			     bool patches, struct standings *ret, struct err *err);

/* Members "risk", "reasons" and "overlaps" of the i-th arm. */
void standings_set_json(struct json j, const struct standings *s, size_t i);
void standings_print(const struct invocation *inv, FILE *out, const struct standings *s);
