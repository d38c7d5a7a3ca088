/*
 * need.h - what an operation lacks that is not in memory.
 *
 * Operations of a layer work on memory only, under its lock. If one lacks something, it changes
 * nothing, records here what it lacks and returns -EAGAIN. The caller loads that without holding
 * any lock and calls again.
 */
#pragma once

#include <errno.h>

#include "cowfs/store/cache.h"

enum need_kind {
	NEED_OBJECT,  /* `object` in the cache */
	NEED_LISTING, /* the names of the tree `object` */
	NEED_ROOM,    /* dirty memory below its limit */
	NEED_CALM,    /* the end of a rollback */
	NEED_NAMES,   /* directories that may be renamed */
	NEED_PROMISE, /* the content that `object` promises */
	NEED_SURETY,  /* the answer whether that will be kept, whatever happens */
	NEED_BLOCK,   /* the bytes that it promises for the block `number` */
};

struct need {
	enum need_kind kind;
	struct object_ref object;
	uint64_t number;
};

static inline int need_object(struct need *need, enum object_kind kind, const struct object_id *id)
{
	*need = (struct need){ .kind = NEED_OBJECT, .object = { .kind = kind, .id = *id } };
	return -EAGAIN;
}
