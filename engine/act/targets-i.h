/*
 * targets-i.h - which directories that received promotions (deliver-i.h) are still needed.
 *
 * A target is registered with the first receipt that names it. Once no receipt and no snapshot
 * names it, nothing can be undone in it.
 */
#pragma once

#include "cowfs/store/catalog.h"
#include "cowfs/store/store.h"

/* Forget those that nothing names.  The caller holds host->snapshots for writing. */
NODISCARD int targets_sweep(struct store *s, struct err *err);
