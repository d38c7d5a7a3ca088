/*
 * land-i.h - change a project to another tree: shared by rollback, promotion and undo.
 *
 * landing_open() captures the project, and no other command touches it until the landing is closed.
 * Then the present state is saved as a snapshot, a receipt is begun, and the directory is changed
 * completely or not at all, by the journal of docs/design/apply.md.
 */
#pragma once

#include "engine/act/receipt-i.h"
#include "engine/act/survey-i.h"
#include "engine/api/rollback.h"
#include "snapshot/apply/plan.h"

struct landing {
	struct task *task;
	const struct project *project;
	struct turn *turn;      /* owned, as is the next */
	struct snapshot newest; /* of the project; all zero: none */
	struct captured now;    /* its root is pinned, */
	bool pinned;            /* or not yet */
	struct buf lacks;       /* what of that could not be read: `lacking`, or NULL, is this */
	char *lacking;
	const char **leave; /* owned; the paths that could not be read: they stay as they are */
	int64_t as_of;
};

/* Capture the project.  Close the landing whether this succeeds or not. */
NODISCARD int landing_open(struct landing *l, struct task *task, const struct project *p,
			   const struct survey_options *options, struct err *err);
void landing_close(struct landing *l);

/*
 * The next capture need not read what this one read.  An automatic snapshot holds it, unless the newest
 * does.
 */
NODISCARD int landing_remember(struct landing *l, struct err *err);

/* -EACCES if more could not be read than `now` and `leave` list. */
NODISCARD int landing_check_unread(const struct landing *l, struct err *err);

struct landing_act {
	struct receipt receipt; /* what is known of it so far; strings are borrowed */
	char *message;          /* borrowed; of the snapshot of what is there */
	/* What it becomes.  Its strings are borrowed; without an id it is new, and gets one. */
	struct snapshot *after;
	/* The receipt under which `after` waited for its checks, to be replaced now; or zero. */
	struct catalog_id pending;
	/*
	 * Of a promotion: the clone's next base, or NULL.  Its strings are borrowed; it gets an id,
	 * unless `after` has the same tree.
	 */
	struct snapshot *base;
	/* Of a change elsewhere than in the project whose receipt it is (deliver-i.h), else NULL: */
	const struct project *owner; /* whose receipt it is */
	const struct project *fresh; /* what changes, if it is to be registered with the records */
	const struct sys_place *place;
	struct engine_watch watch;
};

struct landed {
	char receipt[ENGINE_ID_SIZE]; /* "": nothing was changed */
	char before[ENGINE_ID_SIZE];
	char sha256[SHA256_HEX_SIZE];         /* of what changed; "" of a rollback */
	struct engine_rolled_path *conflicts; /* owned; somebody changed these meanwhile */
	size_t n_conflicts;
};

void landed_done(struct landed *l);

/* A conflict is a result: then nothing was changed, and nothing is kept. */
NODISCARD int landing_act(struct landing *l, struct plan *plan, const struct landing_act *act,
			  struct landed *ret, struct err *err);

/* Add a path to a report, up to ENGINE_ROLLED_PATHS_MAX; -ENOMEM. */
NODISCARD int landing_add_path(struct engine_rolled_path **list, size_t *n, const char *path,
			       char status, const char *why);
NODISCARD int landing_add_note(struct engine_rolled_path **list, size_t *n, const char *path,
			       char status, const char *why, const char *detail);

/* End what a dead daemon was doing to real directories; what cannot be ended is in the log. */
void landing_recover_all(struct host *h);
