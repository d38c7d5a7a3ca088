/*
 * clone-base-i.h - the base of a clone follows what it has promoted.
 *
 * The receipt of a promotion names the clone's old and new base.  The commit that sets the receipt to
 * done or undone marks it as due; a second commit gives the clone its base and removes the mark.
 * Whatever happens between the two, the mark is found again.
 */
#pragma once

struct host;

/* Settle all that are due.  The caller holds no turn.  What fails is logged and stays due. */
void clone_base_settle(struct host *h);
