/*
 * digest-table.h - a number for each object that is known by its SHA-256.
 *
 * Entries are in one array, so a million of them cost no million allocations. Digests may be claims
 * of a stranger, so their slots depend on a random seed, and on all of their bytes.
 */
#pragma once

#include "cowfs/store/object.h"
#include "remote/pack/digest.h"
#include "remote/pack/slots.h"

struct digest_entry {
	struct digest digest;
	uint32_t kind; /* enum object_kind, or the caller's own */
	uint64_t value;
};

#define DIGEST_TABLE_WORDS \
	(SHA256_SIZE / sizeof(uint32_t) + 1) /* of a key: its digest and its kind */

struct digest_table {
	struct digest_entry *list; /* owned; in the order in which they came */
	size_t n, cap;
	struct slots slots;
	uint64_t seed[DIGEST_TABLE_WORDS];
	bool seeded;
};

/* Begins as { 0 }. */
void digest_table_done(struct digest_table *t);

/* Make room for so many more.  -ENOMEM. */
NODISCARD int digest_table_reserve(struct digest_table *t, size_t more);

/* Where its number is, borrowed until the next add; NULL: it is not there. */
uint64_t *digest_table_find(const struct digest_table *t, uint32_t kind, const struct digest *d);

/* 0 when it is new, 1 if it was there and keeps its number; -ENOMEM. */
NODISCARD int digest_table_add(struct digest_table *t, uint32_t kind, const struct digest *d,
			       uint64_t value);
