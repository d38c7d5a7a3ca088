/*
 * survey-i.h - a project as it is now.
 *
 * Captured into a batch, at the cost of looking at every name and of reading what changed since
 * the last snapshot.  It is visible to nobody until the caller names its root in that batch, or
 * pins it, and commits.
 */
#pragma once

#include "engine/host/host-i.h"
#include "snapshot/capture/capture.h"

struct survey {
	struct object_id root;
	uint64_t files, dirs, bytes;
};

/* The caller has the turn of the project's path. */
NODISCARD int survey_project(struct task *task, const struct project *p, struct batch *b,
			     const struct engine_watch *watch, struct survey *ret, struct err *err);

/* --- for who keeps it as a snapshot ------------------------------------------------------- */

struct survey_options {
	bool skip_unreadable;
	struct engine_watch watch;
};

/* The same with all that came of it, which is to be given back whether it succeeds or not. */
NODISCARD int survey_capture(struct task *task, const struct project *p, struct batch *b,
			     const struct survey_options *options, struct captured *ret,
			     struct err *err);

/* Warn of what could not be read; of a failure the first is told already. */
void survey_tell_unread(struct task *task, const struct captured *c, int r);

/*
 * What the record of its snapshot is to say of that, for who goes back to it: what was left out is
 * then not to be removed.  It stands in `hold`; NULL: nothing is lacking.
 */
NODISCARD int survey_lacks(const struct captured *c, struct buf *hold, char **ret, struct err *err);

/*
 * A snapshot of the project that has this root was committed: let the next survey profit.  What
 * hinders that is no failure.
 */
void survey_keep(struct task *task, const struct project *p, const struct captured *c);

/* Nothing of what it profits from may be relied on any more: the next survey reads everything. */
NODISCARD int survey_forget(struct task *task, const struct project *p, struct err *err);
