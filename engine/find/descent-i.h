/*
 * descent-i.h - what a snapshot was made from.
 */
#pragma once

#include "cowfs/store/catalog.h"

/*
 * The project's state that a snapshot descends from: the snapshot itself, the base that its clone had
 * then or, for an old record that does not say, its nearest ancestor that is the project's.
 */
NODISCARD int descent_base(struct store *s, const struct snapshot *start, struct catalog_id *ret,
			   struct err *err);

/* 1 if the snapshot is the other one, or was made from it by way of others that are still there. */
NODISCARD int descent_has(struct store *s, const struct snapshot *start,
			  const struct catalog_id *other, struct err *err);
