/*
 * there-i.h - what a remote has already, so that a push does not send it again.
 *
 * The remote has the objects in the packs that the name's present manifest lists. The next manifest
 * lists them too, so every push adds some. When too many are small, only the large packs of content
 * stay, and the needed objects of the others are packed again. All directories are packed again
 * then, too: a directory on the remote stands for everything below it, and some of that may be in a
 * pack that goes.
 */
#pragma once

#include "engine/transfer/sealing-i.h"
#include "remote/pack/pack.h"

/* Which packs of a manifest the next one lists. */
enum there_plan {
	THERE_ALL,
	THERE_LARGE, /* of content alone */
	THERE_NONE,  /* most of what they hold is not needed any more */
};

/* `files` and `bytes` are those of the snapshot that is pushed. */
enum there_plan there_plan(const struct manifest *m, uint64_t files, uint64_t bytes);

struct there {
	struct pack_set packs; /* what they hold, as far as there is memory to know it */
	bool *listed;          /* owned; for each pack of the manifest: the next one lists it */
};

/* Begins as { 0 }. */
void there_done(struct there *t);

/* All borrowed. */
struct there_source {
	struct connections *lines;
	struct sealing *sealing; /* NULL: the manifest is not sealed */
	const struct manifest *manifest;
	const struct target *target; /* for sentences */
	uint64_t
	    known_max; /* bytes of indexes whose objects are known, of content and of trees each; 0: as usual */
};

/*
 * Look at all packs that stay.  -EBADMSG with a sentence if one is not there.  What the remote claims is bounded:
 * objects of a pack beyond that are not known, and are sent again if the walk comes to them.
 */
NODISCARD int there_load(struct there *t, const struct there_source *from, enum there_plan plan,
			 struct err *err);

bool there_has(const struct there *t, enum object_kind kind, const struct digest *digest);

/* Is a blob there that a manifest lists as `what`?  The same failure. */
NODISCARD int there_check_blob(const struct target *t, struct depot *d,
			       const struct manifest_blob *blob, const char *what, struct err *err);
