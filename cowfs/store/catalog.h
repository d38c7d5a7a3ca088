/*
 * catalog.h - the projects, snapshots, tags, clones, receipts and artifacts of a store: put, got, listed.
 *
 * Writing goes through a batch and takes effect with its commit.
 */
#pragma once

#include "cowfs/store/batch.h"
#include "cowfs/store/record.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/store.h"

NODISCARD int project_put(struct batch *b, const struct project *p, enum ref_mode mode,
			  struct err *err);
NODISCARD int snapshot_put(struct batch *b, const struct snapshot *s, enum ref_mode mode,
			   struct err *err);
NODISCARD int tag_put(struct batch *b, const struct tag *t, enum ref_mode mode, struct err *err);
NODISCARD int clone_put(struct batch *b, const struct clone *c, enum ref_mode mode,
			struct err *err);
NODISCARD int receipt_put(struct batch *b, const struct receipt *r, enum ref_mode mode,
			  struct err *err);

NODISCARD int lazy_put(struct batch *b, const struct lazy *l, enum ref_mode mode, struct err *err);
NODISCARD int lazy_delete(struct batch *b, const struct catalog_id *id, struct err *err);
NODISCARD int artifact_put(struct batch *b, const struct artifact *a, struct err *err);
NODISCARD int resolutions_put(struct batch *b, const struct resolutions *r, struct err *err);

/* -ENOENT if there is none, -EBADMSG if its record is not one. */
NODISCARD int project_get(struct store *s, const struct catalog_id *id, struct project *ret,
			  struct err *err);
NODISCARD int snapshot_get(struct store *s, const struct catalog_id *id, struct snapshot *ret,
			   struct err *err);
NODISCARD int tag_get(struct store *s, const char *name, struct tag *ret, struct err *err);
NODISCARD int clone_get(struct store *s, const char *name, struct clone *ret, struct err *err);
NODISCARD int receipt_get(struct store *s, const struct catalog_id *id, struct receipt *ret,
			  struct err *err);

NODISCARD int allowance_put(struct batch *b, const struct allowance *a, struct err *err);
NODISCARD int allowance_get(struct store *s, const char *clone, struct allowance *ret,
			    struct err *err);
NODISCARD int hidden_put(struct batch *b, const struct hidden *h, struct err *err);
NODISCARD int hidden_get(struct store *s, const char *clone, struct hidden *ret, struct err *err);
NODISCARD int resolutions_get(struct store *s, const char *clone, struct resolutions *ret,
			      struct err *err);

/*
 * By a prefix of the id's hex digits.  -ENOENT if none has it, -EINVAL with a
 * sentence if several do or it is no hex.
 */
NODISCARD int snapshot_find(struct store *s, const char *prefix, struct snapshot *ret,
			    struct err *err);

/* Visit all of a kind.  A non-zero answer of `fn` ends the walk and is returned. */
typedef int (*project_fn)(const struct project *p, void *ctx, struct err *err);
typedef int (*snapshot_fn)(const struct snapshot *s, void *ctx, struct err *err);
typedef int (*tag_fn)(const struct tag *t, void *ctx, struct err *err);
typedef int (*clone_fn)(const struct clone *c, void *ctx, struct err *err);
typedef int (*receipt_fn)(const struct receipt *r, void *ctx, struct err *err);
typedef int (*lazy_fn)(const struct lazy *l, void *ctx, struct err *err);
typedef int (*artifact_fn)(const struct artifact *a, void *ctx, struct err *err);

NODISCARD int project_each(struct store *s, project_fn fn, void *ctx, struct err *err);
NODISCARD int snapshot_each(struct store *s, snapshot_fn fn, void *ctx, struct err *err);
NODISCARD int tag_each(struct store *s, tag_fn fn, void *ctx, struct err *err);
NODISCARD int clone_each(struct store *s, clone_fn fn, void *ctx, struct err *err);
NODISCARD int receipt_each(struct store *s, receipt_fn fn, void *ctx, struct err *err);
NODISCARD int artifact_each(struct store *s, artifact_fn fn, void *ctx, struct err *err);
NODISCARD int lazy_each(struct store *s, lazy_fn fn, void *ctx, struct err *err);
