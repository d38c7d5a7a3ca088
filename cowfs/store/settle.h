/*
 * settle.h - a root in which kept contents replace promises.
 *
 * An entry of form TREE_LAZY promises the bytes of a file that is not captured yet
 * (docs/design/lazy.md). Settling a root gives the same root with the kept contents in place of the
 * promises; lost ones stay promises. Everything else stays, so capturing the same files at once
 * would have given the same root.
 *
 * The result of each directory is remembered: a second root that shares most of its directories
 * with the first costs only those that it does not share. Not thread-safe.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/catalog-id.h"
#include "cowfs/store/tree-entry.h"

/* The name of a promise: this file of the machine, as this stat shows it, for this capture. */
struct object_id settle_promise(const struct object_key *key, const struct catalog_id *capture,
				uint64_t ino, const struct tree_entry *e);

/* The same for bytes that a remote has: an object of this kind and SHA-256, as a file of this size. */
struct object_id settle_promise_remote(const struct object_key *key,
				       const struct catalog_id *capture, enum object_kind kind,
				       uint64_t size, const uint8_t sha256[32]);

/* 1 and the content that was kept; 0: it was lost, and stays a promise. */
typedef int (*settle_fn)(const struct object_id *promise, struct content *ret, void *ctx,
			 struct err *err);

struct settle;

NODISCARD int settle_new(settle_fn fn, void *ctx, struct settle **ret, struct err *err);
void settle_free(struct settle *s); /* NULL is fine */

/* What is kept must stay reachable until the batch has ended, and `root` too. */
NODISCARD int settle_root(struct settle *s, struct batch *b, const struct object_id *root,
			  struct object_id *ret, struct err *err);

/* What became of one promise: 1 and its content; 0: it was lost. */
NODISCARD int settle_one(const struct settle *s, const struct object_id *promise,
			 struct content *ret, struct err *err);

/* What the tree of a directory became, in any root so far; NULL: no root had it. */
const struct object_id *settle_find(const struct settle *s, const struct object_id *tree);

/* Make the entry of a directory, or of a file, what it became.  1; 0: it was lost, or no root had it. */
NODISCARD int settle_entry(const struct settle *s, struct tree_entry *e, struct err *err);
