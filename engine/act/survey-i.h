/*
 * survey-i.h - a project as it is now.
 *
 * A survey captures the project into a batch; it looks at every name and reads what changed since the
 * last snapshot.  Nobody sees the result until the caller names its root in that batch, or pins it,
 * and commits.
 */
#pragma once

#include "base/strlist.h"
#include "engine/host/host-i.h"
#include "snapshot/capture/capture.h"

struct survey {
	struct object_id root;
	uint64_t files, dirs, bytes;
};

/* The caller has the turn of the project's path. */
NODISCARD int survey_project(struct task *task, const struct project *p, struct batch *b,
			     const struct engine_watch *watch, struct survey *ret, struct err *err);

/* --- to keep it as a snapshot ------------------------------------------------------------- */

struct survey_options {
	bool skip_unreadable;
	const struct strlist *only; /* names in the top directory; NULL: all */
	const char *part;           /* as capture.h has it, and the next as well */
	const struct sys_place *place;
	const struct catalog_id *lazy;        /* promise files in its name; NULL: read them */
	const struct ration_options *unasked; /* as capture.h has it */
	/* Of a capture that is under way, as it will be used instead of those that were written; or NULL. */
	const struct signatures *lent;
	const struct engine_list *include; /* mounts below `/` that belong to it; NULL: none */
	struct strlist *left_out;          /* gets what is no part of `/`; NULL: not wanted */
	bool machine; /* of a landing: `/` itself may change, as root asked for named paths of it */
	struct engine_watch watch;
};

/* The same with the full result, to be freed whether it succeeds or not. */
NODISCARD int survey_capture(struct task *task, const struct project *p, struct batch *b,
			     const struct survey_options *options, struct captured *ret,
			     struct err *err);

/* Warn about what could not be read; if `r` is a failure, its sentence names the first already. */
void survey_tell_unread(struct task *task, const struct captured *c, int r);

/* What could not be read and is this path, or holds it; borrowed.  NULL: nothing. */
const char *survey_unread_at(const struct captured *c, const char *path);

/*
 * The list of unread paths for the snapshot's record, so that a rollback to it does not remove them.
 * *ret points into `hold`; NULL: nothing is missing.
 */
NODISCARD int survey_lacks(const struct captured *c, struct buf *hold, char **ret, struct err *err);

/* Add another record's list, or NULL, to that in `hold`. */
NODISCARD int survey_join_lacks(const char *more, struct buf *hold, char **ret, struct err *err);

/* What of such a list is this path, or holds it: it begins there; NULL: nothing. */
const char *survey_lacks_at(const char *lacks, const char *path, size_t *ret_len);

/* Call it when a snapshot with this root was committed: it speeds up the next survey.  Cannot fail. */
void survey_keep(struct task *task, const struct project *p, const struct captured *c);

/* Drop what speeds up surveys: the next one reads everything. */
NODISCARD int survey_forget(struct task *task, const struct project *p, struct err *err);
