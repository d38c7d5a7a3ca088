/*
 * slots.h - find an entry in an array by a hash of its key.
 *
 * The entries are in an array of the owner's, in the order in which they came; this table holds
 * only 32 bits of each one's hash and its number. So reading a table of a hundred thousand entries
 * once touches a tenth of the memory that it would with the entries in the slots.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct slot {
	uint32_t hash;
	uint32_t number; /* plus one; 0: the slot is free */
};

struct slots {
	struct slot *list; /* owned */
	size_t n, cap;     /* cap: 0 or a power of two */
};

/* Begins as { 0 }. */
void slots_done(struct slots *s);

/* Make room for so many entries in all.  -ENOMEM. */
NODISCARD int slots_reserve(struct slots *s, size_t n);

/* `number` is below 2^32 - 1.  -ENOMEM. */
NODISCARD int slots_add(struct slots *s, uint32_t hash, size_t number);

#define SLOTS_NONE SIZE_MAX

/* The next entry that has this hash, SLOTS_NONE behind the last.  `*at` begins as the hash. */
static inline size_t slots_next(const struct slots *s, uint32_t hash, size_t *at)
{
	while (s->cap > 0) {
		const struct slot *slot = &s->list[(*at)++ & (s->cap - 1)];

		if (slot->number == 0)
			break;
		if (slot->hash == hash)
			return slot->number - 1;
	}
	return SLOTS_NONE;
}
