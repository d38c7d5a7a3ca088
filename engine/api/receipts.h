/*
 * receipts.h - receipts: the records of promotions, rollbacks and undos of a project.
 *
 * They come from the stored state: no daemon is asked or started.
 */
#pragma once

#include "engine/api/promote.h"

enum engine_receipt_kind {
	ENGINE_RECEIPT_PROMOTION,
	ENGINE_RECEIPT_ROLLBACK,
	ENGINE_RECEIPT_UNDO,
};
const char *engine_receipt_kind_name(enum engine_receipt_kind kind); /* "promotion", ... */

struct engine_receipt {
	char id[ENGINE_ID_SIZE];
	enum engine_receipt_kind kind;
	bool undone; /* taken back by a later one */
	char before[ENGINE_ID_SIZE], after[ENGINE_ID_SIZE];
	char base[ENGINE_ID_SIZE];   /* that the clone started from; or "" */
	char undoes[ENGINE_ID_SIZE]; /* the receipt that it took back; or "" */
	char *to;    /* owned; the directory that changed if that was not the project, else NULL */
	char *clone; /* owned; whose changes they were, or NULL */
	char *who;   /* owned */
	uint64_t uid;
	int64_t created;               /* nanoseconds since 1970 */
	char *sha256;                  /* owned; docs/design/promote.md; or NULL */
	struct engine_checked *checks; /* owned */
	size_t n_checks;
};

struct engine_receipts {
	struct engine_receipt *list; /* owned */
	size_t n;
};

void engine_receipts_done(struct engine_receipts *r);

/* Of the project around the engine's directory, newest first; what was only begun is not told. */
NODISCARD int engine_receipts(struct engine *e, struct engine_receipts *ret, struct err *err);
