/*
 * cache.h - objects of a store in memory, unpacked and checked, shared by all who read them.
 *
 * What it holds never changes, so a reference may be kept as long as it is useful.
 * Chunks have a budget of their own: a stream of file content does not drive out the
 * trees that every look-up needs.  What is referenced counts, and stays whatever the budget says.
 *
 * Thread-safe; no lock is held while the store is read.
 */
#pragma once

#include "cowfs/store/object.h"
#include "cowfs/store/store.h"

struct cache;

struct cached {
	struct object_ref what;
	const uint8_t *data;
	size_t len;
};

struct cache_limits {
	size_t chunk_bytes; /* what unpacked chunks may take */
	size_t meta_bytes;  /* and trees, recipes and attribute sets */
};

/* The store must outlive it. */
NODISCARD int cache_new(struct store *s, const struct cache_limits *limits, struct cache **ret,
			struct err *err);
void cache_free(struct cache *c); /* nothing may be referenced; NULL is fine */
DEFINE_CLEANUP(struct cache *, cache_free)

struct store *cache_store(const struct cache *c);

/* A reference if it is in memory, else NULL.  Never waits for the store. */
const struct cached *cache_find(struct cache *c, enum object_kind kind, const struct object_id *id);

/* A reference, read from the store if need be; fails as store_require() does. */
NODISCARD int cache_load(struct cache *c, enum object_kind kind, const struct object_id *id,
			 const struct cached **ret, struct err *err);

const struct cached *cached_ref(const struct cached *o);
void cached_unref(const struct cached *o); /* NULL is fine */
DEFINE_CLEANUP(const struct cached *, cached_unref)

/* Forget all that nobody references. */
void cache_drop(struct cache *c);

struct cache_stats {
	uint64_t found, loaded;         /* answers from memory, and from the store */
	size_t chunk_bytes, meta_bytes; /* held now, referenced or not */
};
struct cache_stats cache_stats(struct cache *c);
