/*
 * need.h - what an operation lacks that is not in memory.
 *
 * Operations of a layer work on memory alone, under its lock.  One that lacks something
 * changes nothing, records here what it lacks and returns -EAGAIN.  The caller loads that without
 * holding any lock and calls again.
 */
#pragma once

#include <errno.h>

#include "cowfs/store/cache.h"

enum need_kind {
	NEED_OBJECT,  /* `object` in the cache */
	NEED_LISTING, /* the names of the tree `object` */
	NEED_ROOM,    /* dirty memory below its limit */
	NEED_CALM,    /* the end of a rollback */
	NEED_PROMISE, /* the content that `object` promises */
};

struct need {
	enum need_kind kind;
	struct object_ref object;
};

static inline int need_object(struct need *need, enum object_kind kind, const struct object_id *id)
{
	*need = (struct need){ .kind = NEED_OBJECT, .object = { .kind = kind, .id = *id } };
	return -EAGAIN;
}
