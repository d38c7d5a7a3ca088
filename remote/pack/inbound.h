/*
 * inbound.h - make a root of this store of objects in packs.
 *
 * Everything is checked before it is put: the SHA-256 of each object, then everything that makes a
 * tree canonical (names, order, types, sizes, hard links). Anything wrong is -EBADMSG with a
 * sentence, and nothing of the batch need be committed. Objects that a base of this store has at
 * the same path are shared with it and not looked for in the packs.
 *
 * Each distinct object is read once, however often it is referred to, and memory grows with the
 * number of distinct objects, which the indexes bound.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/content.h"
#include "remote/pack/digests.h"
#include "remote/pack/pack.h"

#define INBOUND_DEPTH_MAX 2048

struct inbound_options {
	struct pack_set *packs;
	struct digests *known;        /* is added to */
	const struct object_id *base; /* a root that stays until the batch has ended; NULL: none */
	/* After each directory: a negative answer ends it with that code.  May be NULL. */
	int (*step)(void *ctx, uint64_t objects, uint64_t bytes, struct err *err);
	void *ctx;
	/*
	 * Name a promise of a file's bytes instead of bringing them: the entry becomes TREE_LAZY.  Which object
	 * has them, and whether that fits the size, was looked up in the indexes.  NULL: all is brought.
	 */
	int (*promise)(void *ctx, enum object_kind kind, const struct digest *digest, uint64_t size,
		       struct object_id *ret, struct err *err);
	void *promise_ctx;
	/* Files of these names are brought all the same.  NULL: none. */
	bool (*at_once)(const char *name, size_t len);
};

struct inbound_result {
	struct object_id root;
	uint64_t files, bytes; /* as a snapshot counts them */
	uint64_t objects;      /* that came out of packs */
};

/*
 * -ENODATA, without a sentence, if packs are missing that it needs: they are `wanted` in the set then,
 * and nothing may be committed.  -EBADMSG, -ELOOP or -E2BIG if the packs are not to be trusted.
 */
NODISCARD int inbound_root(struct batch *b, const struct inbound_options *options,
			   const struct digest *root, struct inbound_result *ret, struct err *err);

/*
 * The content that was promised: a chunk, or a large file by its top node.  -ENODATA if some of it is not
 * here; what that is stands in the packs.
 */
NODISCARD int inbound_content(struct batch *b, const struct inbound_options *options,
			      enum object_kind kind, const struct digest *digest, uint64_t size,
			      struct content *ret, struct err *err);

/*
 * Up to `len` bytes from `off` on of a large file that was promised, fewer only at its end: how many.
 * -ENODATA as above.
 */
NODISCARD ssize_t inbound_read(struct pack_set *packs, const struct digest *top, uint64_t size,
			       uint64_t off, void *data, size_t len, struct err *err);

/*
 * Is all of a promised content in the packs that are here?  1, 0, or -EBADMSG.  With `miss`, all that is
 * not counts as missed.
 */
NODISCARD int inbound_is_here(struct pack_set *packs, enum object_kind kind,
			      const struct digest *digest, uint64_t size, bool miss,
			      struct err *err);
