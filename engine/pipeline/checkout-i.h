/*
 * checkout-i.h - a branch as the target of a stage: "git:REPOSITORY#BRANCH".
 *
 * The tree of the branch is checked out in a directory of our own beside the store, which is a
 * project like any other: the change is merged, checked and judged there, and lands there first.
 * Then it becomes a commit, and the branch moves to that. The repository's own index and work trees
 * are never touched.
 */
#pragma once

#include "engine/pipeline/pipeline-i.h"
#include "snapshot/text/branch.h"

struct checkout {
	struct branch *branch; /* owned; NULL: the target is a directory */
	char *dir;             /* owned */
	int lock;              /* owned */
};

#define CHECKOUT_INIT ((struct checkout){ .lock = -1 })

void checkout_done(struct checkout *c);

bool target_is_branch(const char *target);

/* The directory in which the target's tree is; the repository; a name for people.  Owned; NULL: no memory. */
char *target_dir(const struct engine *e, const char *target);
char *target_repository(const char *target);

NODISCARD int target_branch(const char *target, struct branch **ret, struct err *err);

/* Take it for this process and fill it with the branch as it is now.  -EBUSY: another process has it. */
NODISCARD int checkout_make(const struct engine *e, const char *target, struct checkout *ret,
			    struct err *err);

/* What landed in the directory becomes a commit of the branch.  1: landed; 0: there was nothing for git. */
NODISCARD int checkout_land(struct shipping *s, const struct engine_stage *stage,
			    const struct checkout *c, struct err *err);

/* 1: taken back by a commit; 0: later commits conflict with that. */
NODISCARD int checkout_take_back(struct shipping *s, struct engine_passed *p, struct err *err);
