/*
 * promote-i.h - promotion and undo, done in cowfsd.
 *
 * Checks are run by who asks, on a clone of the merged tree, between two questions over one
 * connection: the first merges and keeps the result as a snapshot, the second merges again and lands
 * only if that gave the very same tree.
 */
#pragma once

#include "engine/api/promote.h"
#include "engine/host/task-i.h"
#include "engine/wire/wire-i.h"
#include "snapshot/text/guard.h"

/* `ret_now` is for the second question; with `check` ret->after names what is to be checked. */
NODISCARD int promote_do(struct task *task, const struct promote_options *options,
			 struct engine_promotion *ret, int64_t *ret_now, struct err *err);

/* --- promote-digest.c --------------------------------------------------------------------- */

struct plan;

/*
 * What apply will not write, and so not sum up, as the bytes stay: before anything is touched, since
 * they may be damaged.
 */
NODISCARD int promote_sum_rest(struct store *s, struct plan *plan, struct err *err);

/* SHA-256, in hex, of what the plan changes: docs/design/promote.md.  What was not summed up yet is read. */
NODISCARD int promote_digest(struct store *s, const struct plan *plan, char hex[65],
			     struct err *err);

/* --- promote-pending.c -------------------------------------------------------------------- */

/*
 * Keep a tree as a snapshot until the connection ends, and while it is not landed: with a receipt that
 * is begun, so that whoever finds them after a crash clears both away.
 */
NODISCARD int pending_put(struct task *task, struct snapshot *s, struct receipt *r,
			  struct err *err);

/* That one of this connection, by its hex id: its snapshot and receipt.  -ENOENT with a sentence. */
struct pending;
NODISCARD int pending_find(struct task *task, const char *id, struct pending **ret,
			   struct err *err);
const struct catalog_id *pending_snapshot(const struct pending *p);
const struct catalog_id *pending_receipt(const struct pending *p);

/* It has landed: it stays. */
void pending_landed(struct pending *p);
