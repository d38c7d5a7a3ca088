/*
 * content-edit.h - a file with some of its blocks changed.
 *
 * The cost depends on the change: blocks and recipe nodes that no change touches are taken over by
 * id, unread. The result is the content that content_writer would give for the same bytes and
 * holes.
 */
#pragma once

#include "cowfs/store/cache.h"
#include "cowfs/store/content.h"

/* Blocks of CHUNK_SIZE_MAX bytes that differ from the base; the file may end in the last. */
struct content_change {
	uint64_t first;   /* number of the block: its offset / CHUNK_SIZE_MAX */
	uint64_t n;       /* blocks; 1 unless a hole */
	const void *data; /* the block up to its end or the end of the file; NULL: a hole, or */
	const struct object_id *chunk; /* the same bytes, put through this batch already */
};

/*
 * The first `kept` bytes of `base` (at most its size, and at most `size`), zeros or holes
 * from there to `size`, and then the changes over that.  Blocks that begin at or behind
 * `kept` are holes; the rest of a block that `kept` cuts is zeros, of a hole still a hole.
 * `list` in rising order, without overlap, within `size`.  *ret counts `data` exactly, for
 * which nodes of a base with holes may have to be read though they only go.
 *
 * The base has been committed, and what reaches it stays until the batch has ended
 * (batch.h).  One that is damaged where it must be read is -EBADMSG.
 */
NODISCARD int content_edit(struct batch *b, struct cache *c, const struct content *base,
			   uint64_t kept, uint64_t size, const struct content_change *list,
			   size_t n, struct content *ret, struct err *err);
