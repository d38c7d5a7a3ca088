/*
 * clone-base-i.h - the base of a clone follows what it has promoted.
 *
 * The receipt of a promotion names the clone's old and new base.  The commit that sets the receipt to
 * done or undone marks it as due; a second commit gives the clone its base and removes the mark.
 * Whatever happens between the two, the mark is found again.
 */
#pragma once

struct clone;
struct host;
struct snapshot;

/* Settle all that are due.  The caller holds no turn.  What fails is logged and stays due. */
void clone_base_settle(struct host *h);

/*
 * Without a receipt, of a promotion that changes nothing: `to` is stored as a new snapshot, whose tree the caller
 * pins, unless the clone has got another base since.  The caller holds no turn.  What fails is logged.
 */
void clone_base_move(struct host *h, const struct clone *clone, struct snapshot *to);
