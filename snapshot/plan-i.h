/*
 * plan-i.h - private to plan: one that is being made.
 */
#pragma once

#include "base/map.h"
#include "snapshot/plan.h"

struct plan_making {
	struct store *store;
	const struct plan_options *options;
	struct plan plan;
	size_t cap_dirs, cap_files;
	struct map known; /* paths of plan.dirs, by themselves */
	char **kept;      /* owned, and each of them: what is there and is left alone */
	size_t n_kept;
};

void plan_step_done(struct plan_step *s);

/* Is it among the paths that are left alone? */
bool plan_leaves(const struct plan_options *o, const char *path);

/* --- plan-link.c ------------------------------------------------------------------------ */

/* Which names are one file: sets `first`, `anchor`, and what follows for `what`. */
NODISCARD int plan_link(struct plan_making *m, struct err *err);
