/*
 * beside-i.h - another name that a push to a new name can build on.
 *
 * It is the one that this store pushed to the same remote, or fetched from it, of the same project.
 * It may be in another repository of the same registry: repositories of one registry share blobs,
 * and one takes over blobs of another without moving a byte. A push builds on nothing that this
 * store has not seen itself: a name may be somebody else's, and its indexes may claim objects that
 * its packs do not hold.
 */
#pragma once

#include "cowfs/store/record.h"
#include "engine/transfer/transfer-i.h"

struct beside {
	struct target target; /* no url: there is none */
	char *repository; /* owned; from which packs are to be taken over; NULL: they are there */
	struct seen seen;
	struct connections more;   /* to that repository */
	struct connections *lines; /* these, or those of the push */
	struct manifest manifest;
};

/* Begins as { 0 }, and must stay where it is. */
void beside_done(struct beside *b);

/*
 * Where a push of such a snapshot to `t` may look, if anywhere; `across`: also in other repositories, whose
 * packs hold what its readers may not be meant to see.  Nothing is asked for yet.
 */
NODISCARD int beside_find(struct engine *e, const struct target *t, const struct snapshot *like,
			  bool across, struct beside *ret, struct err *err);
/* Connect to it, if need be, and read the manifest.  `to` are the connections of the push. */
NODISCARD int beside_open(struct engine *e, struct beside *b, struct connections *to, uint64_t rate,
			  uint64_t jobs, struct err *err);
/* Take over the packs that are listed, with their indexes.  -EXDEV without a sentence: not all of them. */
NODISCARD int beside_take(struct beside *b, const bool *listed, struct connections *to,
			  struct err *err);
