/*
 * unborn-i.h - snapshots of a state that a project is about to get, while checks run or the change is
 * being made.  They are in the store but in no history, and never count as a project's newest.
 */
#pragma once

#include "cowfs/store/catalog.h"

struct unborn {
	struct catalog_id *list; /* owned; few */
	size_t n;
};

void unborn_done(struct unborn *u);
NODISCARD int unborn_load(struct store *s, struct unborn *ret, struct err *err);
bool unborn_has(const struct unborn *u, const struct catalog_id *snapshot);

/* Is its `after` unborn?  A rollback leads to an existing snapshot, unless it is one of some paths. */
bool unborn_by(const struct receipt *r);
