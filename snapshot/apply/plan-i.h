/*
 * plan-i.h - private to plan: a plan that is being made.
 */
#pragma once

#include "base/map.h"
#include "base/strlist.h"
#include "cowfs/store/root.h"
#include "snapshot/apply/plan.h"

/* What a root's own rules exclude from it; directories are read as they are needed. */
struct plan_rules {
	struct store *store;
	struct root root;
	struct map dirs; /* struct ruled by path, owned */
};

struct plan_making {
	struct store *store;
	const struct plan_options *options;
	struct plan plan;
	size_t cap_dirs, cap_files;
	struct map known;        /* paths of plan.dirs, by themselves */
	struct strlist kept;     /* paths that exist and are left alone */
	struct plan_rules rules; /* the rules in the wanted tree */
};

void plan_step_done(struct plan_step *s);

/* Is it among the paths that are left alone? */
bool plan_leaves(const struct plan_options *o, const char *path);

/* --- plan-rules.c ----------------------------------------------------------------------- */

NODISCARD int plan_rules_open(struct plan_rules *rules, struct store *s,
			      const struct object_id *root, struct err *err);
void plan_rules_done(struct plan_rules *rules);

/* 1 if a capture with the rules of the root would not have seen it, had it been there. */
NODISCARD int plan_rules_leave_out(struct plan_rules *rules, const char *path, bool is_dir,
				   struct err *err);

/* --- plan-link.c ------------------------------------------------------------------------ */

/* Which names are one file: sets `first`, `anchor`, and what follows for `what`. */
NODISCARD int plan_link(struct plan_making *m, struct err *err);
