/*
 * audit.h - was something changed behind our back: receipts, runs, events, changes, firings?
 *
 * Receipts have a chain of digests in the database (docs/reference/format.md, "Audit").  Each event has
 * the digest of the one before, and the event that ends a run has the digest of the run's record.
 * Changes and firings have a log of the same sort, with the digest of each state.  All of it can be computed anew by whoever may write to the store, so the heads are worth keeping elsewhere.
 */
#pragma once

#include "base/sha256.h"
#include "engine/api/engine.h"

struct engine_audit {
	uint64_t receipts, events, runs; /* that were checked */
	uint64_t records;                /* the same: changes and firings */
	uint64_t unchained;              /* records from before there was a chain */
	uint64_t receipt_number, event_number, record_number;
	char receipt_head[SHA256_HEX_SIZE], event_head[SHA256_HEX_SIZE],
	    record_head[SHA256_HEX_SIZE]; /* or "" */
	uint64_t problems;
};

/* `kind` is "receipt", "audit entry", "event", "record entry", "run", "change" or "firing"; all is borrowed for the call. */
typedef int (*engine_audit_fn)(const char *kind, const char *name, const char *problem, void *ctx,
			       struct err *err);

/*
 * Read the store as it lies, without a daemon.  `heads` are digests from an earlier answer, each of
 * which must still be in a chain.
 */
NODISCARD int engine_audit_verify(struct engine *e, const char *const *heads, size_t n_heads,
				  engine_audit_fn fn, void *ctx, struct engine_audit *ret,
				  struct err *err);
