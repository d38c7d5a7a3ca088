/*
 * fetching-i.h - a fetch in progress, of all bytes or of names and attributes only.
 */
#pragma once

#include "base/strlist.h"
#include "engine/transfer/known-i.h"
#include "engine/transfer/sealing-i.h"
#include "engine/transfer/signers-i.h"
#include "remote/pack/pack.h"

#define FETCHING_ROUNDS_MAX 64 /* of asking cowfsd what else it needs */

struct fetching {
	struct engine *e;
	const struct engine_fetch_options *options;
	struct target target;
	struct connections lines;
	struct depot *depot; /* the first of them */
	struct manifest manifest;
	struct manifest_snapshot told;
	struct digest digest; /* of the manifest */
	struct manifest have; /* of the snapshot that we have; no packs: of none */
	struct signers signers;
	struct sealing sealing;
	struct digest *plain; /* owned; of each pack: its digest as cowfsd knows it */
	char *signer;         /* owned */
	struct seen seen;
	bool has_seen;
	struct known known; /* of the project; all zero: nothing */
	int dir, lock;      /* of the directory where packs come to */
	int hold;           /* owned; keeps a lazy fetch for its first clone; -1: none */
	char *tag;          /* owned */
	char *meta;         /* owned; labels */
	struct strlist packs;
	struct meter meter;
	uint64_t n_brought;
	bool same; /* it was here already */
};

/* HEX.end, for a file of a pack. */
const char *fetching_file(const struct digest *d, const char *end, char name[PACK_NAME_SIZE]);

/* Does the snapshot that we have of this name share that pack? */
bool fetching_has(const struct fetching *f, const struct digest *d);

/*
 * Is there room for so many bytes where `dir` is?  A manifest can claim more than any disk has: nothing of it
 * comes then, -ENOSPC.
 */
NODISCARD int fetching_check_room(const struct fetching *f, int dir, uint64_t need,
				  struct err *err);

/* What cowfsd learns of it; borrowed from `f` and `root`. */
struct engine_receive_options fetching_options(const struct fetching *f,
					       char root[SHA256_HEX_SIZE]);

/*
 * Bring names and attributes, have cowfsd promise the rest, and start a process that brings it (fetcher.c).
 * 1, and nothing done, if that is no gain or not possible: then all of it is to be fetched.
 */
NODISCARD int fetch_lazily(struct fetching *f, struct engine_received *got, struct err *err);
