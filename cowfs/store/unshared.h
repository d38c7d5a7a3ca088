/*
 * unshared.h - the objects that one root reaches and the root that it came from does not.
 *
 * The cost depends on the difference, because the walk skips subtrees that both roots name. An
 * object counts as shared if the other root names it, in any place, on the way to a difference. An
 * object that the other root has only inside a skipped subtree counts as unshared, for example a
 * file copied out of an unchanged directory.
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
