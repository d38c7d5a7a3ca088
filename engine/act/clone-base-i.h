/*
 * clone-base-i.h - the base of a clone follows what it has promoted.
 *
 * The receipt of a promotion names the base that the clone had and the one that it is to have.
 * The commit that makes the receipt done, or undone, marks it as due; a second commit gives the
 * clone its base and takes the mark away.  Whatever happens between the two, the mark is found again.
 */
#pragma once

struct host;

/* Settle all that are due.  The caller has no turn.  A failure is in the log, and stays due. */
void clone_base_settle(struct host *h);
