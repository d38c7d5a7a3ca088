/*
 * journal.h - what is being done to a real directory, so that nobody finds it half done.
 *
 * One file for each act, in the store's directory, there from before the first change until the
 * last trace of the act is gone.  docs/design/apply.md has its bytes and what each state means to who
 * finds it.
 */
#pragma once

#include "snapshot/apply/plan.h"
#include "snapshot/capture/stage-name.h"

#define JOURNAL_DIR        "journal" /* in the store's directory */
#define JOURNAL_ID_SIZE    STAGE_ID_SIZE
#define JOURNAL_STAGE_SIZE (sizeof(STAGE_NAME_PREFIX) + JOURNAL_ID_SIZE)

enum journal_state {
	JOURNAL_STAGING = 1, /* new content is being written aside; nothing else was touched */
	JOURNAL_ACTING = 2,  /* names change: to be taken back */
	JOURNAL_DONE = 3,    /* all is as wanted; what was displaced may go */
};

struct journal {
	char id[JOURNAL_ID_SIZE];
	enum journal_state state;
	char *project; /* owned; path of the directory */
	uint64_t ino;  /* of it */
	struct plan plan;
};

void journal_done(struct journal *j);

/* Name of the stage in the top directory. */
const char *journal_stage(const struct journal *j, char name[JOURNAL_STAGE_SIZE]);

/* Give it an id that no other has. */
NODISCARD int journal_name(struct journal *j, struct err *err);

/* Write all of it, in place of what it was; durable when this returns. */
NODISCARD int journal_put(struct store *s, const struct journal *j, struct err *err);

/* Everything but its state is as it was put. */
NODISCARD int journal_set_state(struct store *s, struct journal *j, enum journal_state state,
				struct err *err);

NODISCARD int journal_remove(struct store *s, const struct journal *j, struct err *err);

/* What a dead process left of one that it was writing goes; only while nobody writes any. */
void journal_sweep(struct store *s);

/*
 * Each journal, in no order, of the directory `project` or (NULL) of all.  A non-zero answer of
 * `fn` ends the walk.  One that cannot be read is of a directory that holds its stage, and no
 * other's business: after all others it is -EBADMSG with its name.
 */
typedef int (*journal_fn)(struct journal *j, void *ctx, struct err *err);
NODISCARD int journal_each(struct store *s, const char *project, journal_fn fn, void *ctx,
			   struct err *err);
