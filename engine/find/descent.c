#include "engine/find/descent-i.h"

#include <errno.h>

#include "engine/find/part-i.h"

/* Bounded: a damaged record may lead round in a circle. */
#define ANCESTORS_MAX 100000

int descent_base(struct store *s, const struct snapshot *start, struct catalog_id *ret,
		 struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot at = { 0 };
	struct catalog_id next = start->parent;
	int r = 0;

	*ret = start->id;
	if (!start->clone)
		return 0;
	if (!catalog_id_is_zero(&start->base)) {
		r = snapshot_get(s, &start->base, &at, err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		*ret = part_same(at.part, start->part) ? start->base : start->id;
		return r;
	}
	for (unsigned i = 0; i < ANCESTORS_MAX && !catalog_id_is_zero(&next); i++) {
		snapshot_done(&at);
		r = snapshot_get(s, &next, &at, err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		if (!at.clone) {
			*ret = at.id;
			return 0;
		}
		next = at.parent;
	}
	return 0;
}

int descent_has(struct store *s, const struct snapshot *start, const struct catalog_id *other,
		struct err *err)
{
	CLEANUP(snapshot_done) struct snapshot at = { 0 };
	struct catalog_id next = start->parent;
	int r;

	if (catalog_id_same(&start->id, other))
		return 1;
	for (unsigned i = 0; i < ANCESTORS_MAX && !catalog_id_is_zero(&next); i++) {
		if (catalog_id_same(&next, other))
			return 1;
		snapshot_done(&at);
		at = (struct snapshot){ 0 };
		r = snapshot_get(s, &next, &at, err);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		next = at.parent;
	}
	return 0;
}
