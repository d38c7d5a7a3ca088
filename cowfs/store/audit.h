/*
 * audit.h - the chain of digests that shows whether a receipt was changed behind snap's back.
 *
 * Each written or deleted receipt adds an entry with the SHA-256 of the receipt and the digest of
 * the entry before, in the same transaction. The head is a copy of the last entry. A person who can
 * write the database can compute the whole chain anew, so a digest kept elsewhere is the best
 * proof. Beyond AUDIT_MAX the oldest entries go; the head names the first that must be there.
 */
#pragma once

#include "base/sha256.h"
#include "cowfs/store/record.h"
#include "cowfs/store/ref.h"
#include "cowfs/store/store.h"

#define AUDIT_MAX 65536

/* What is wrong, and with which record: kind and name of the entry or of its subject. */
typedef int (*audit_fn)(const char *kind, const char *name, const char *problem, void *ctx,
			struct err *err);

struct audit_state {
	uint64_t entries, records; /* that were checked */
	uint64_t unchained;        /* records that are older than the chain */
	uint64_t number;           /* of the head; 0: there is no chain yet */
	char head[SHA256_HEX_SIZE];
	bool has_wanted; /* some entry has the digest that was asked for */
};

/* Check all of it.  `wanted` is a digest that one of the entries must have, or NULL. */
NODISCARD int audit_verify(struct store *s, const char *wanted, audit_fn fn, void *ctx,
			   struct audit_state *ret, struct err *err);
