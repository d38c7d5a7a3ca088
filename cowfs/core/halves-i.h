/*
 * halves-i.h - private to the core: writes that arrive in pieces.
 *
 * The kernel ends a request at a page that it does not have whole. So it sends one write(2) that
 * begins within such a page, as most appends do, as two requests, the first of which ends with that
 * page. A state taken between them would show half of a record that its program wrote in one step.
 * So a thread that takes a state holds new writes for a moment, lets writes continue that have
 * begun, and takes the state when no thread can be between two pieces.
 *
 * That moment is bounded: if a thread does not come back in time, or if a write goes on for some
 * MiB, the state may hold only its first part.
 */
#pragma once

#include "cowfs/core/layer-i.h"

/* All of it with the lock. */

/* A write was done; remember it if more may follow. */
void halves_note(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off,
		 size_t len);

/*
 * While writes are held: is this one the next piece of one that has begun?  If not, what its thread
 * had begun before is done.
 */
bool halves_let_in(struct layer *l, const struct layer_call *call, uint64_t node, uint64_t off);

/* Hold writes and wait, without the lock meanwhile, until none is half done. */
void halves_hold(struct layer *l);
void halves_release(struct layer *l);
