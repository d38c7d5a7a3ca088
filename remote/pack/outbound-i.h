/*
 * outbound-i.h - shared by the files of outbound.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "cowfs/store/store.h"
#include "remote/pack/digest.h"

/*
 * Chunks are read before they are asked for, in the order in which they will be, so that many are
 * digested at once (outbound-ahead.c).  What cannot be read ahead is no failure: it is not found here, and
 * a later reader finds out why.
 */
struct outbound_ahead;

struct outbound_ahead_chunk {
	struct object_id id;
	struct digest digest;
	struct buf bytes;
};

/* Is this object at the other end already, with all below it? */
typedef bool (*outbound_ahead_skip_fn)(void *ctx, enum object_kind kind,
				       const struct object_id *id);

/* All below a tree. */
NODISCARD int outbound_ahead_new(struct store *s, const struct object_id *tree,
				 outbound_ahead_skip_fn skip, void *ctx,
				 struct outbound_ahead **ret, struct err *err);
void outbound_ahead_free(struct outbound_ahead *a); /* NULL is fine */
DEFINE_CLEANUP(struct outbound_ahead *, outbound_ahead_free)

/* A chunk, borrowed until the next call; NULL: it was not read ahead.  Those before it are dropped. */
const struct outbound_ahead_chunk *outbound_ahead_take(struct outbound_ahead *a,
						       const struct object_id *id);
