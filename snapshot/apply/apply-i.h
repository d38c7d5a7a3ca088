/*
 * apply-i.h - private to apply: one act on one directory.
 *
 * The stage is a directory of apply's own in the top one, with a flat set of slots: "nI" holds the
 * new file of step I until it lands, "oI" the old one that was moved away. If two files change
 * places, the old one goes into "nI". Inode numbers identify the files, never names.
 */
#pragma once

#include <sys/stat.h>

#include "snapshot/apply/apply.h"
#include "snapshot/apply/journal.h"

#define SLOT_SIZE 24
#define NOTES_MAX 1000 /* paths reported at most */

/* Opens safely even if the file was swapped for something else. */
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
	bool no_exchange; /* the file system lacks it */
	bool back;        /* some directories were made again, so their inodes may differ */
	bool sync_each;   /* few enough files to sync them one by one */
	size_t dir;       /* the directory of plan.dirs that is open as `fd`, or PLAN_NONE */
	int fd;
	struct stat dir_st; /* its stat when it was opened */
	_Atomic uint64_t done;
	uint64_t total;
};

/* --- apply-acting.c: what all of it shares ------------------------------------------------ */

void acting_done(struct acting *a);

/* Report a path; running out of memory is no reason to stop. */
void acting_note(struct acting *a, const char *path, const char *why);
void acting_progress(struct acting *a); /* one more is done */
void acting_tell(struct acting *a);     /* how many are; from the caller's thread alone */

/* Last part of a path. */
const char *step_name(const struct plan_step *s);
const char *slot_name(char kind, size_t step, char name[SLOT_SIZE]);
bool slot_parse(const char *name, char *ret_kind, size_t *ret_step);

/* --- apply-dir.c: the way to a directory ------------------------------------------------- */

/*
 * A directory of the plan by descriptor, borrowed until the next call.  -ESTALE if the name is
 * gone, or another file system begins on the way.
 */
NODISCARD int dir_at(struct acting *a, size_t dir, struct err *err);
void dir_forget(struct acting *a);

/* The same, made writable for its owner. */
NODISCARD int dir_to_change(struct acting *a, size_t dir, struct err *err);

/* The same for any path from the top, with its stat; the descriptor is owned. */
NODISCARD int dir_open_path(struct acting *a, const char *path, size_t len, struct stat *ret,
			    struct err *err);

/* Why a name in a directory is not free, as the end of a sentence. */
const char *dir_why_taken(int fd, const char *name);

/* --- apply-sign.c: is it what it should be? ---------------------------------------------- */

/*
 * Are the attributes as captured?  Compare `ctime` only where nothing of ours can have touched the
 * file.
 */
bool sign_matches(const struct stat *st, const struct tree_entry *e, bool with_ctime);

/* Do size and mtime say that nobody wrote to the regular file?  Mode and owner do not count. */
bool sign_same_bytes(const struct stat *st, const struct tree_entry *e);

/* Does the file have names outside the tree?  Changing it in place would change it there, too. */
bool sign_is_shared(const struct stat *st, const struct plan_step *s);

/*
 * Is the file that was moved into the stage the one the plan expected?  Compares bytes where times
 * leave a doubt.
 */
NODISCARD int sign_displaced(struct acting *a, const struct plan_step *s, const char *slot,
			     struct err *err); /* 1 or 0 */
NODISCARD int sign_is_displaced(struct acting *a, const struct plan_step *s, const char *slot,
				const struct stat *st, struct err *err); /* its stat */

/* Compare the whole plan with the directory, before anything changes. */
NODISCARD int sign_check_all(struct acting *a, struct err *err);

/* --- apply-attr.c: attributes ------------------------------------------------------------- */

/* Give an open regular file or directory exactly the entry's attributes, mtime last. */
NODISCARD int attr_set(struct acting *a, int fd, const struct tree_entry *e, struct err *err);
NODISCARD int attr_set_but_mtime(struct acting *a, int fd, const struct tree_entry *e,
				 struct err *err);

/* The same for anything else in the stage. */
NODISCARD int attr_set_at(struct acting *a, const char *slot, const struct tree_entry *e,
			  struct err *err);
NODISCARD int attr_set_mtime(int fd, const struct tree_entry *e, struct err *err);

/* --- apply-stage.c: new files, beside their places ---------------------------------------- */

NODISCARD int stage_make(struct acting *a, struct err *err);

/* Open the journal's stage; 0 also if there is none. */
NODISCARD int stage_open(struct acting *a, struct err *err);

/*
 * Remove the stage with every file that is ours or in the store; report everything else and leave
 * it.
 */
NODISCARD int stage_clear(struct acting *a, struct err *err);

/* --- apply-trash.c: a stage that nobody needs any more ------------------------------------- */

/* Move the stage to where apply_sweep() finds it; false if that cannot be done. */
NODISCARD bool trash_take(struct acting *a);

/* Put back a stage that a dead process's trash_take() had not renamed yet. */
void trash_give_back(struct acting *a);

/* --- apply-fill.c: those of them that are regular files ------------------------------------ */

/* Does the step write a new file, rather than link to one? */
bool fill_makes(const struct plan_step *s, size_t i);
NODISCARD int fill_all(struct acting *a, struct err *err);

/* --- apply-step.c: there ------------------------------------------------------------------ */

NODISCARD int step_all(struct acting *a, struct err *err);

/* 1 and the file of that name; 0 and all zero if there is none. */
NODISCARD int step_look(int fd, const char *name, struct stat *st);

/* rename(2) that replaces nothing, also where the file system has no word for that. */
NODISCARD int step_move_new(int from_fd, const char *from, int to_fd, const char *to);

/* Set a directory's attributes and times, as wanted or as they were. */
NODISCARD int step_settle(struct acting *a, size_t dir, bool wanted, struct err *err);

/* --- apply-back.c: and back --------------------------------------------------------------- */

/* Undo every step found on disk, whatever this process remembers. */
NODISCARD int step_back_all(struct acting *a, struct err *err);
