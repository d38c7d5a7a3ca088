/*
 * judge.h - the guard's verdict on a plan.
 *
 * The guard judges the plan that lands: a file changes under all of its names, and a removed
 * directory takes its content along. Besides names and modes it looks at facts that only the
 * resulting tree shows: where a link leads, and whether a directory becomes, or is, a git
 * repository.
 */
#pragma once

#include "snapshot/apply/plan.h"
#include "snapshot/text/guard.h"

struct judge_options {
	struct guard *guard; /* NULL: nothing is held */
	const char *top;     /* the absolute path of the directory that changes */
	bool elsewhere;      /* `top` is no project: names count with the directories above them */
	bool
	    system; /* `top` is a whole root file system: owners and permissions count (judge_access()) */
	const char *const
	    *outside; /* absolute: a link must not lead there, though it is below `top` */
	size_t n_outside;
	const char *mount; /* the clone's path: texts that name it are reported; or NULL */
	const char *const *allow;
	size_t n_allow;
	bool (*left_out)(const char *path, void *ctx); /* what must not change; NULL: nothing */
	void *left_out_ctx;
};

/*
 * A changed path, as plan_each() passes it.  `rule` is NULL if none applies.  `detail` says more: a
 * link's target whatever the rule, the script or recipe that changed, else NULL.
 */
struct judgement {
	const struct plan_step *step;
	char status; /* 'A', 'M', 'D' */
	const struct guard_rule *rule;
	const char *detail;
};

typedef int (*judge_fn)(const struct judgement *j, void *ctx); /* negative: stop, and return it */

NODISCARD int judge_plan(struct store *s, const struct plan *plan,
			 const struct judge_options *options, judge_fn fn, void *ctx,
			 struct err *err);

/* --- judge-access.c ----------------------------------------------------------------------- */

/*
 * What the rules of a system say to the owner and the permissions of something that is not removed.  *ret
 * stays if none applies.
 */
NODISCARD int judge_access(struct store *s, const struct plan_step *step,
			   const struct guard_rule **ret, struct err *err);

/* --- judge-scripts.c ---------------------------------------------------------------------- */

/*
 * Which scripts of a package.json, or recipes of a makefile, are new or differ: "script 'test'".  Left
 * empty if none is.  `before` is NULL for a new file.
 */
NODISCARD int judge_scripts(const struct buf *before, const struct buf *after, struct buf *out);
NODISCARD int judge_recipes(const struct buf *before, const struct buf *after, struct buf *out);
