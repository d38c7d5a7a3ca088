/*
 * unborn-i.h - snapshots of what a project is to become, while that waits for its checks or is
 * being done: they are in the store and in nobody's history, and none of them is the newest of
 * a project.
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

/* Does its `after` wait to be?  A rollback leads to a snapshot that was there before it,
 * but for one of some paths. */
bool unborn_by(const struct receipt *r);
