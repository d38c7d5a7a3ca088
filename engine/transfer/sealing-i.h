/*
 * sealing-i.h - encryption of pushes and decryption of fetches: the recipients, and the key.
 */
#pragma once

#include "engine/transfer/sender-i.h"
#include "remote/seal.h"

struct sealing {
	struct engine *e;
	struct seal seal;
	struct cache *cache; /* borrowed */
	char *dir;           /* owned; for temporary files */
	struct digest recipients;
	struct manifest_opener opener; /* of this */
};

void sealing_done(struct sealing *s);

struct sealing_options {
	const char *const *to; /* recipients */
	size_t n_to;
	const char *identity; /* NULL: not named */
	bool closes;          /* it pushes: recipients of config.yaml count */
};

/*
 * What the options name, or else what config.yaml says of the remote.  `s` must stay where it is.
 */
NODISCARD int sealing_begin(struct engine *e, const struct target *t, struct cache *cache,
			    const struct sealing_options *o, struct sealing *s, struct err *err);
/* Is something to be sealed? */
bool sealing_is_on(const struct sealing *s);

/* Where temporary files go: made if need be. */
NODISCARD int sealing_prepare(struct sealing *s, struct err *err);

/* What a sealed blob holds: as noted when this store sealed it, or opened with the key. */
NODISCARD int sealing_get(struct sealing *s, struct depot *d, const struct manifest_blob *blob,
			  struct buf *out, struct err *err);

/* Seal a parcel, or some bytes, in their place, and note what is in them. */
NODISCARD int sealing_close_parcel(struct sealing *s, struct parcel *p, struct err *err);
NODISCARD int sealing_close(struct sealing *s, struct buf *bytes, struct err *err);
