/*
 * journal.h - the journal of a change of a real directory, so that nobody finds it half done.
 *
 * One file per act, in the store's directory, from before the first change until the last trace of
 * the act is gone.  docs/design/apply.md describes its bytes and what recovery does in each state.
 */
#pragma once

#include "snapshot/apply/plan.h"
#include "snapshot/capture/stage-name.h"

#define JOURNAL_DIR        "journal" /* in the store's directory */
#define JOURNAL_ID_SIZE    STAGE_ID_SIZE
#define JOURNAL_STAGE_SIZE (sizeof(STAGE_NAME_PREFIX) + JOURNAL_ID_SIZE)

enum journal_state {
	JOURNAL_STAGING = 1, /* new content is being written aside; nothing else is touched */
	JOURNAL_ACTING = 2,  /* names change; recovery takes them back */
	JOURNAL_DONE = 3,    /* everything is as wanted; displaced files may go */
};

struct journal {
	char id[JOURNAL_ID_SIZE];
	enum journal_state state;
	char *project; /* owned; the directory's path */
	uint64_t ino;  /* the directory's inode */
	struct plan plan;
};

void journal_done(struct journal *j);

/* The stage's name in the top directory. */
const char *journal_stage(const struct journal *j, char name[JOURNAL_STAGE_SIZE]);

/* Give the journal a unique id. */
NODISCARD int journal_name(struct journal *j, struct err *err);

/* Write the whole journal, replacing any earlier version; durable when this returns. */
NODISCARD int journal_put(struct store *s, const struct journal *j, struct err *err);

/* Change only the state; the rest must be as it was put. */
NODISCARD int journal_set_state(struct store *s, struct journal *j, enum journal_state state,
				struct err *err);

NODISCARD int journal_remove(struct store *s, const struct journal *j, struct err *err);

/* Remove half-written journals of dead processes; call only while nobody writes one. */
void journal_sweep(struct store *s);

/*
 * Call `fn` for each journal, in no order, of the directory `project` or (NULL) of all.  A non-zero
 * answer ends the walk.  An unreadable journal concerns only the directory that holds its stage: it
 * fails with -EBADMSG and its name, after all others.
 */
typedef int (*journal_fn)(struct journal *j, void *ctx, struct err *err);
NODISCARD int journal_each(struct store *s, const char *project, journal_fn fn, void *ctx,
			   struct err *err);
