/*
 * apply-i.h - private to apply: one act on one directory.
 *
 * The stage is a directory of ours in the top one, with a flat set of slots: "nI" holds the new
 * file of step I until it lands, "oI" the old one that was moved away.  Two files that change
 * places put the old one in "nI".  Which is which is told by inode numbers, never by name.
 */
#pragma once

#include <sys/stat.h>

#include "snapshot/apply/apply.h"
#include "snapshot/apply/journal.h"

#define SLOT_SIZE 24
#define NOTES_MAX 1000 /* paths that are told */

/* For a file that may have been swapped for anything. */
#define APPLY_OPEN (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct acting {
	struct store *store;
	struct journal journal;
	struct plan *plan; /* journal.plan */
	const struct apply_options *options;
	struct apply_report *report;
	int top_fd;
	dev_t dev;
	int stage_fd; /* -1: none */
	char stage[JOURNAL_STAGE_SIZE];
	bool no_exchange; /* the file system cannot */
	bool back;        /* directories may be others than they were: some were made again */
	bool sync_each;   /* few enough files to sync them one by one */
	size_t dir;       /* open now as `fd`, among plan.dirs; PLAN_NONE: none */
	int fd;
	struct stat dir_st; /* of it, when it was opened */
	_Atomic uint64_t done;
	uint64_t total;
};

/* --- apply-acting.c: what all of it shares ------------------------------------------------ */

void acting_done(struct acting *a);

/* Tell of a path; memory that runs out is no reason to stop. */
void acting_note(struct acting *a, const char *path, const char *why);
void acting_progress(struct acting *a); /* one more is done */
void acting_tell(struct acting *a);     /* how many are; from the caller's thread alone */

/* Last part of a path. */
const char *step_name(const struct plan_step *s);
const char *slot_name(char kind, size_t step, char name[SLOT_SIZE]);
bool slot_parse(const char *name, char *ret_kind, size_t *ret_step);

/* --- apply-dir.c: the way to a directory ------------------------------------------------- */

/*
 * A directory of the plan, by descriptor: borrowed until the next call.  -ESTALE if there is none
 * of that name any more, or another file system begins on the way.
 */
NODISCARD int dir_at(struct acting *a, size_t dir, struct err *err);
void dir_forget(struct acting *a);

/* The same, and its owner may make and remove names in it. */
NODISCARD int dir_to_change(struct acting *a, size_t dir, struct err *err);

/* The same for any path from the top, with what it is; owned. */
NODISCARD int dir_open_path(struct acting *a, const char *path, size_t len, struct stat *ret,
			    struct err *err);

/* --- apply-sign.c: is it what it should be? ---------------------------------------------- */

/* Attributes as captured; `ctime` only where nothing of ours can have touched the file. */
bool sign_matches(const struct stat *st, const struct tree_entry *e, bool with_ctime);

/* Of a regular file: size and mtime say that nothing was written, whatever its mode and owner. */
bool sign_same_bytes(const struct stat *st, const struct tree_entry *e);

/*
 * Has it names that are not in the tree?  Those are outside of the directory, or left out of it, and
 * what is changed in place would change there, too.
 */
bool sign_is_shared(const struct stat *st, const struct plan_step *s);

/* What was moved into the stage: is it what the plan expected, to the last byte that may be in doubt? */
NODISCARD int sign_displaced(struct acting *a, const struct plan_step *s, const char *slot,
			     struct err *err); /* 1, or 0 if not */
NODISCARD int sign_is_displaced(struct acting *a, const struct plan_step *s, const char *slot,
				const struct stat *st, struct err *err); /* as it was looked at */

/* All of the plan against the directory, before anything is done. */
NODISCARD int sign_check_all(struct acting *a, struct err *err);

/* --- apply-attr.c: attributes ------------------------------------------------------------- */

/* Of an open regular file or directory: exactly those of the entry, mtime last. */
NODISCARD int attr_set(struct acting *a, int fd, const struct tree_entry *e, struct err *err);
NODISCARD int attr_set_but_mtime(struct acting *a, int fd, const struct tree_entry *e,
				 struct err *err);

/* Of anything else, in the stage. */
NODISCARD int attr_set_at(struct acting *a, const char *slot, const struct tree_entry *e,
			  struct err *err);
NODISCARD int attr_set_mtime(int fd, const struct tree_entry *e, struct err *err);

/* --- apply-stage.c: new files, beside their places ---------------------------------------- */

NODISCARD int stage_make(struct acting *a, struct err *err);

/* Open the one of the journal: 0 also if it is not there. */
NODISCARD int stage_open(struct acting *a, struct err *err);

/* Remove it with what is known to be ours or to be in the store; anything else stays and is told. */
NODISCARD int stage_clear(struct acting *a, struct err *err);

/* --- apply-trash.c: a stage that nobody needs any more ------------------------------------- */

/* Move it to where apply_sweep() finds it; false if that cannot be done. */
NODISCARD bool trash_take(struct acting *a);

/* Put back what trash_take() of a dead process had not given a name to. */
void trash_give_back(struct acting *a);

/* --- apply-fill.c: those of them that are regular files ------------------------------------ */

/* Is it one that is written, and no further name of a file that is? */
bool fill_makes(const struct plan_step *s, size_t i);
NODISCARD int fill_all(struct acting *a, struct err *err);

/* --- apply-step.c: there ------------------------------------------------------------------ */

NODISCARD int step_all(struct acting *a, struct err *err);

/* 1: what bears a name; 0, and all zero: nothing does. */
NODISCARD int step_look(int fd, const char *name, struct stat *st);

/* rename(2) that replaces nothing, also where the file system has no word for that. */
NODISCARD int step_move_new(int from_fd, const char *from, int to_fd, const char *to);

/* The attributes and times of a directory: as it is to be, or as it was. */
NODISCARD int step_settle(struct acting *a, size_t dir, bool wanted, struct err *err);

/* --- apply-back.c: and back --------------------------------------------------------------- */

/* Whatever was done of it; looks at the disk, not at what this process remembers. */
NODISCARD int step_back_all(struct acting *a, struct err *err);
