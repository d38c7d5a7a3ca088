/*
 * digest-table.h - a number for each object that is known by its SHA-256.
 *
 * Slots in one array, so that a million entries cost no million allocations.  Digests may be claims of
 * a stranger: where they land depends on a random seed.
 */
#pragma once

#include "cowfs/store/object.h"
#include "remote/pack/digest.h"

struct digest_slot {
	struct digest digest;
	uint32_t kind; /* enum object_kind, or the caller's own; 0: the slot is free */
	uint64_t value;
};

struct digest_table {
	struct digest_slot *slots; /* owned */
	size_t n, cap;             /* cap: 0 or a power of two */
	uint64_t seed;
};

/* Begins as { 0 }. */
void digest_table_done(struct digest_table *t);

/* Where its number is, borrowed until the next add; NULL: it is not there. */
uint64_t *digest_table_find(const struct digest_table *t, uint32_t kind, const struct digest *d);

/* 0 when it is new, 1 if it was there and keeps its number; -ENOMEM. */
NODISCARD int digest_table_add(struct digest_table *t, uint32_t kind, const struct digest *d,
			       uint64_t value);
