/*
 * map.h - a hash table from keys to pointers.
 *
 * The map stores the caller's key and value pointers and owns neither: a key
 * usually lives inside its value and must not change while it is in the map.
 * How keys hash and compare is given once, at the start.  Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

typedef uint64_t (*map_hash_fn)(const void *key);
typedef bool (*map_equal_fn)(const void *a, const void *b);

struct map_slot;

struct map {
	map_hash_fn hash;
	map_equal_fn equal;
	struct map_slot *slots; /* owned */
	size_t n_slots;         /* 0 or a power of two */
	size_t n;               /* live entries */
	size_t n_used;          /* live entries and tombstones */
};

#define MAP_INIT(hash_fn, equal_fn) ((struct map){ .hash = (hash_fn), .equal = (equal_fn) })

/* For keys that are C strings. */
uint64_t map_hash_str(const void *key);
bool map_equal_str(const void *a, const void *b);

/* For keys that are a uint64_t. */
uint64_t map_hash_u64(const void *key);
bool map_equal_u64(const void *a, const void *b);

void map_done(struct map *m); /* frees; the map is then empty and usable */

/* Make room for `n` entries at once, so that entering them moves none. */
NODISCARD int map_reserve(struct map *m, size_t n);

void *map_get(const struct map *m, const void *key); /* NULL if absent */

/*
 * Enter `value` unless the key is there already.  0 when entered, 1 when the key
 * was there (*ret_existing then is its value and nothing changed), or -ENOMEM.
 */
NODISCARD int map_add(struct map *m, const void *key, void *value, void **ret_existing);

void *map_remove(struct map *m, const void *key); /* the value that was there, or NULL */

/* Visit every value in no order: start with *pos = 0, NULL ends.  Removing the visited one is fine. */
void *map_next(const struct map *m, size_t *pos);
