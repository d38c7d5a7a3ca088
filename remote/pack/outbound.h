/*
 * outbound.h - the objects of a root that the other side lacks, in portable form.
 *
 * The walk skips everything below a directory that the other side has: a side that holds an object
 * holds all that it refers to. So a push costs what changed, not the size of the tree, once the
 * digests of the rest are known (digests.h). Objects come bottom-up, each once.
 */
#pragma once

#include "cowfs/store/store.h"
#include "remote/pack/digests.h"

#define OUTBOUND_DEPTH_MAX 2048

struct outbound_sink {
	/* Does the other side have it? */
	bool (*has)(void *ctx, enum object_kind kind, const struct digest *digest);
	/* Take an object that it lacks; `data` is borrowed. */
	int (*put)(void *ctx, enum object_kind kind, const struct digest *digest, const void *data,
		   size_t len, struct err *err);
	/*
	 * After each directory that was read, or is there, with the files that are new to the count: in all
	 * those of the root.  A negative answer ends it with that code.  May be NULL.
	 */
	int (*step)(void *ctx, uint64_t files, struct err *err);
	void *ctx;
};

/* -EBADMSG if the store is damaged, -ELOOP if directories are nested deeper than OUTBOUND_DEPTH_MAX. */
NODISCARD int outbound_root(struct store *s, struct digests *known, const struct object_id *root,
			    const struct outbound_sink *sink, struct digest *ret, struct err *err);
