/*
 * digests.h - the SHA-256 of objects of a store, remembered once computed.
 *
 * An id of a store stands for the same bytes for ever, so an entry never becomes wrong; it only
 * saves reading. The file may be removed at any time, and a damaged one counts as removed.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "cowfs/store/object.h"
#include "remote/pack/digest.h"
#include "remote/pack/slots.h"

#define DIGESTS_DIR  "remote"  /* in the store's directory */
#define DIGESTS_FILE "digests" /* in that */
#define DIGESTS_MAX  ((size_t)2 << 20)

struct digests {
	struct buf file; /* as it is written, without its end; empty: nothing was added yet */
	struct buf used; /* for each entry a byte: 1 if it was asked for or added */
	struct slots slots;
	size_t n;
	bool changed;
};

/* Begins as { 0 }. */
void digests_done(struct digests *d);

/* What an earlier digests_save() left in this directory; none if it cannot be read.  -ENOMEM. */
NODISCARD int digests_load(struct digests *d, const char *dir, struct err *err);
/* Beyond DIGESTS_MAX entries only those stay that were used since the load. */
NODISCARD int digests_save(struct digests *d, const char *dir, struct err *err);

bool digests_find(struct digests *d, enum object_kind kind, const struct object_id *id,
		  struct digest *ret);
NODISCARD int digests_add(struct digests *d, enum object_kind kind, const struct object_id *id,
			  const struct digest *digest);
