/*
 * unshared.h - the objects that one root reaches and the root that it came from does not.
 *
 * At the cost of the difference: what both name is not looked into.  So an object counts as shared
 * if the other root shows it on the way to where the two differ, in any place; one that is only
 * found behind something that both have counts as unshared, as a file does that was copied out of a
 * directory in which nothing changed.
 */
#pragma once

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

struct unshared {
	uint64_t objects;
	uint64_t bytes; /* packed */
};

NODISCARD int unshared_count(struct store *s, const struct object_id *root,
			     const struct object_id *other, struct unshared *ret, struct err *err);
