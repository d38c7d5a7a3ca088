/*
 * plan.h - the steps that make a directory show another tree.
 *
 * Pure: it compares two roots and looks at nothing on disk, so a plan can be shown to a person
 * before anything happens. Each step says what is expected to be there, exactly as it was captured,
 * and what is wanted there; apply.h carries it out, and keeps it in its journal.
 *
 * Directories have a list of their own: they are made before their content, removed after it, and
 * get their attributes last. The list includes directories that stay but whose times the act would
 * change.
 */
#pragma once

#include <stdbool.h>

#include "base/sha256.h"
#include "cowfs/store/store.h"
#include "cowfs/store/tree-entry.h"
#include "snapshot/diff/diff.h"

enum plan_act {
	PLAN_TOUCH,   /* of directories: only its times will have to be set again */
	PLAN_CHANGE,  /* attributes, in place */
	PLAN_REMOVE,  /* there is nothing afterwards */
	PLAN_CREATE,  /* there was nothing */
	PLAN_REPLACE, /* never of directories */
};

#define PLAN_NONE SIZE_MAX

struct plan_step {
	char *path; /* owned; from the top, "" is the top */
	enum plan_act act;
	unsigned what; /* enum diff_what */
	/* Without names; targets are owned.  All zero where there is nothing. */
	struct tree_entry before, after;
	bool before_linked, after_linked;

	/* Its directory's index in plan.dirs; PLAN_NONE for a directory that stays. */
	size_t dir;

	/* Files only. */
	size_t first; /* the step that is the first name of the same file to be; often itself */
	char *anchor; /* owned; on a file's first name: another name that stays, or NULL */

	/* Which files or directories they are, as apply found and made them; 0: not known yet. */
	uint64_t old_ino, new_ino;

	/* The checksum of the content that apply wrote, if it was asked for. */
	bool summed;
	uint8_t sha256[SHA256_SIZE];
};

struct plan {
	struct plan_step *dirs, *files; /* owned; in the order of a walk */
	size_t n_dirs, n_files;
	struct object_id from, to; /* roots */
	int64_t as_of;             /* when `from` began to be captured; nanoseconds since 1970 */
};

struct plan_options {
	const char *const *leave; /* paths left alone with all below them */
	size_t n_leave;
	bool leave_unseen; /* they are there, though `now` lacks them: what holds them stays, too */
	/*
	 * An existing file stays if the rules (ignore.h) of the wanted tree exclude it: that the
	 * tree lacks it then means nothing.
	 */
	bool leave_ignored;
	bool leave_unwanted; /* nothing that is there goes */
	int64_t as_of;
	struct twins *twins; /* as diff.h has it; or NULL */
};

/*
 * Plan the way from the directory as just captured to the wanted tree; both roots stay reachable.
 */
NODISCARD int plan_make(struct store *s, const struct object_id *now,
			const struct object_id *wanted, const struct plan_options *options,
			struct plan *ret, struct err *err);
void plan_done(struct plan *p);

bool plan_is_empty(const struct plan *p);

/*
 * Call `fn` for each step but those that change times alone, in walk order.  A name that was or
 * becomes a directory is passed twice.
 */
typedef int (*plan_fn)(const struct plan_step *step, void *ctx);
NODISCARD int plan_each(const struct plan *p, plan_fn fn, void *ctx);

/*
 * Does a step that plan_each() passes count as a changed path, as in changes.h?  A directory that
 * comes or goes counts only if no file comes or goes in it.
 */
bool plan_counts(const struct plan *p, const struct plan_step *step);
uint64_t plan_count(const struct plan *p);

/*
 * Replace the groups that this process cannot give to files below `top`, passing each step to `fn`
 * before it changes.  Root can give any group.
 */
NODISCARD int plan_fit_groups(struct plan *p, const char *top, plan_fn fn, void *ctx,
			      struct err *err);

/* Append all of it to `out`; and back, -EBADMSG with a sentence unless it is exactly one plan. */
NODISCARD int plan_encode(const struct plan *p, struct buf *out, struct err *err);
NODISCARD int plan_decode(const void *data, size_t len, struct plan *ret, struct err *err);
