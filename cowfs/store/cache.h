/*
 * cache.h - objects of a store in memory, unpacked and checked, shared by all readers.
 *
 * Its objects never change, so a reference may be kept as long as it is useful. The cache may hold
 * objects that the store has no more, or not yet: presence here proves nothing. Chunks have a
 * budget of their own, so that a stream of file content does not evict the trees that every look-up
 * needs. Referenced objects count, and stay whatever the budget.
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

/* The same as a question; it does not count as a use. */
bool cache_has(struct cache *c, enum object_kind kind, const struct object_id *id);

/* A reference, read from the store if need be; fails as store_require() does. */
NODISCARD int cache_load(struct cache *c, enum object_kind kind, const struct object_id *id,
			 const struct cached **ret, struct err *err);

/*
 * Enter an object that the caller just put, and so knows to be sound: a clone's changed directories
 * are soon changed again, and compared with what they were.  If memory is short, it is read from the
 * store when needed.
 */
void cache_add(struct cache *c, enum object_kind kind, const struct object_id *id, const void *data,
	       size_t len);

/*
 * From here on trees of the store are read through this cache (tree.h, root.h), whoever reads
 * them.  It may be freed when nobody does any more.
 */
void cache_share(struct cache *c);

/* As cache_add() for the cache that is shared, if there is one and nothing has to leave it for that. */
void cache_offer(struct store *s, enum object_kind kind, const struct object_id *id,
		 const void *data, size_t len);

/* As store_require(), through the cache that is shared if there is one. */
NODISCARD int cache_require(struct store *s, enum object_kind kind, const struct object_id *id,
			    struct buf *out, struct err *err);

void cached_unref(const struct cached *o); /* NULL is fine */
DEFINE_CLEANUP(const struct cached *, cached_unref)

/* Was it found to obey all rules of its kind?  It never changes, so once is enough. */
bool cached_is_sound(const struct cached *o);
void cached_set_sound(const struct cached *o);

/* Forget all that nobody references. */
void cache_drop(struct cache *c);

struct cache_stats {
	uint64_t found, loaded;         /* answers from memory, and from the store */
	size_t chunk_bytes, meta_bytes; /* held now, referenced or not */
};
struct cache_stats cache_stats(struct cache *c);
