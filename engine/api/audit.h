/*
 * audit.h - whether receipts, runs, events, changes or firings were changed behind snap's back.
 *
 * Receipts have a chain of digests in the database (docs/reference/format.md, "Audit").  Each event has
 * the digest of the one before, and the event that ends a run has the digest of the run's record.
 * Changes and firings have a log of the same sort, with the digest of each state.  Anyone who can write to the
 * store can compute all of this again.  So keep the heads elsewhere, or sign them: nobody can forge a signature
 * without the key.
 */
#pragma once

#include "base/sha256.h"
#include "engine/api/engine.h"

struct engine_audit_head {
	uint64_t number;              /* 0: there is no chain */
	char digest[SHA256_HEX_SIZE]; /* or "" */
};

/* That somebody signed these heads. */
struct engine_audit_signature {
	char file[24];    /* in STORE/audit */
	char signer[256]; /* the principal; "": not known */
	int64_t time;     /* as the signer had it */
	struct engine_audit_head receipts, events, records;
};

struct engine_audit {
	uint64_t receipts, events, runs; /* that were checked */
	uint64_t records;                /* the same: changes and firings */
	uint64_t unchained;              /* records from before there was a chain */
	uint64_t receipt_number, event_number, record_number;
	char receipt_head[SHA256_HEX_SIZE], event_head[SHA256_HEX_SIZE],
	    record_head[SHA256_HEX_SIZE]; /* or "" */
	uint64_t problems;
	bool is_signed;                          /* by an allowed signer, who was asked for: */
	struct engine_audit_signature signature; /* the newest of them */
};

/*
 * `kind` is "receipt", "audit entry", "event", "record entry", "run", "change", "firing", "head" or "signature"; all
 * is borrowed for the call.
 */
typedef int (*engine_audit_fn)(const char *kind, const char *name, const char *problem, void *ctx,
			       struct err *err);

struct engine_audit_options {
	/* Digests from an earlier answer, each of which must still be in a chain. */
	const char *const *heads;
	size_t n_heads;
	/* A file of ssh-keygen's ALLOWED SIGNERS: what one of them signed last must be in the chains, too; NULL. */
	const char *signers;
};

/* Read the store as it lies, without a daemon. */
NODISCARD int engine_audit_verify(struct engine *e, const struct engine_audit_options *options,
				  engine_audit_fn fn, void *ctx, struct engine_audit *ret,
				  struct err *err);

/*
 * Sign the heads that engine_audit_verify() found, if it found no problem.  `key` is as ssh-keygen -f has it.
 * -ENOTSUP without ssh-keygen, -EACCES if it cannot sign.
 */
NODISCARD int engine_audit_sign(struct engine *e, const struct engine_audit *a, const char *key,
				struct engine_audit_signature *ret, struct err *err);
