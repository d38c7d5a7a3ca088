/*
 * promote-i.h - promotion and undo, done in cowfsd.
 *
 * The command runs the checks, on a clone of the merged tree, between two requests over one
 * connection: the first merges and saves the result as a snapshot, the second merges again and
 * lands only if the result is the very same tree.
 */
#pragma once

#include "engine/api/promote.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"
#include "snapshot/text/guard.h"

/* `ret_now` is for the second question; with `check` ret->after names what is to be checked. */
NODISCARD int promote_do(struct task *task, const struct promote_options *options,
			 struct engine_promotion *ret, int64_t *ret_now, struct err *err);

/* --- promote-pending.c -------------------------------------------------------------------- */

/*
 * Keep a tree as a snapshot until it lands or the connection ends.  Its receipt is begun, so that
 * after a crash both are found and removed.
 */
NODISCARD int pending_promotion_put(struct task *task, struct snapshot *s, struct receipt *r,
				    struct err *err);

/* Find it on this connection by the snapshot's hex id.  -ENOENT with a sentence. */
struct pending_promotion;
NODISCARD int pending_promotion_find(struct task *task, const char *id,
				     struct pending_promotion **ret, struct err *err);
const struct catalog_id *pending_promotion_snapshot(const struct pending_promotion *p);
const struct catalog_id *pending_promotion_receipt(const struct pending_promotion *p);

/* It has landed: it stays. */
void pending_promotion_landed(struct pending_promotion *p);
