/*
 * growth-i.h - note how large the store is (engine/api/growth.h).
 *
 * Failures are logged once and have no other effect.
 */
#pragma once

#include "engine/api/growth.h"
#include "engine/host/host-i.h"

/* By the keeper, each time that it looks around: notes at most once a minute, and only what changed. */
void growth_look(struct host *h);

/* At once: the daemon ends. */
void growth_note(struct host *h);

/* Before a gc; then what it found and freed, which becomes a row of before and one of after it. */
void growth_before_gc(struct host *h, struct engine_growth_row *ret);
void growth_after_gc(struct host *h, struct engine_growth_row *before, uint64_t freed);
