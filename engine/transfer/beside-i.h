/*
 * beside-i.h - another repository of the server that a push goes to.
 *
 * Repositories of one registry share blobs: what one has, another takes over without moving a byte.  So a
 * name that is new can build on what this store pushed to another repository, or fetched from it, of
 * the same project.  What this store has not seen itself it does not build on: the other repository may
 * be somebody else's, and its indexes may claim what its packs do not hold.
 */
#pragma once

#include "cowfs/store/record.h"
#include "engine/transfer/transfer-i.h"

struct beside {
	struct target target; /* what was seen last */
	char *repository;     /* owned; its name; NULL: there is none */
	struct seen seen;
	struct connections lines;
	struct manifest manifest;
};

/* Begins as { 0 }, and must stay where it is. */
void beside_done(struct beside *b);

/* Where a push of such a snapshot to `t` may look, if anywhere.  Nothing is asked for yet. */
NODISCARD int beside_find(struct engine *e, const struct target *t, const struct snapshot *like,
			  struct beside *ret, struct err *err);
/* Connect to it, and read the manifest. */
NODISCARD int beside_open(struct engine *e, struct beside *b, uint64_t rate, uint64_t jobs,
			  struct err *err);
/* Take over the packs that are listed, with their indexes.  -EXDEV without a sentence: not all of them. */
NODISCARD int beside_take(struct beside *b, const bool *listed, struct connections *to,
			  struct err *err);
