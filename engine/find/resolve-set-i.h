/*
 * resolve-set-i.h - stored resolutions of a clone's conflicts.
 *
 * A resolution counts for exactly the three versions that it was made for: once the base, the
 * project or the clone has another one there, it is stale and is not used. On disk:
 * docs/reference/format.md, "Resolutions".
 */
#pragma once

#include "base/sha256.h"
#include "cowfs/store/catalog.h"
#include "engine/api/resolve.h"
#include "snapshot/merge/merge.h"

struct resolution {
	char *path;                     /* owned; where the conflict is reported */
	enum engine_take take;          /* never ENGINE_TAKE_NONE */
	char versions[SHA256_HEX_SIZE]; /* what it was made for: resolve_versions() */
	struct content bytes;           /* of ENGINE_TAKE_FILE */
	/* For the merge that is under way: */
	bool valid;                  /* it was made for what conflicts there */
	enum merge_on_conflict side; /* whose file it is, but for its bytes */
};

struct resolve_set {
	struct resolution *list; /* owned */
	size_t n;
	char
	    *asked; /* owned; JSON: how the promotion was asked for that met them; NULL: none was */
};

void resolve_set_done(struct resolve_set *s);

/* Empty if there is none. */
NODISCARD int resolve_set_load(struct store *s, const struct clone *clone, struct resolve_set *ret,
			       struct err *err);

/* Replace the stored set.  The content that it names is stored or in the same batch. */
NODISCARD int resolve_set_put(struct batch *b, const struct clone *clone,
			      const struct resolve_set *set, struct err *err);

struct resolution *resolve_set_find(const struct resolve_set *s, const char *path); /* NULL: none */

/* Append a resolution for a path that has none; NULL: no memory. */
struct resolution *resolve_set_add(struct resolve_set *s, const char *path);
void resolve_set_drop(struct resolve_set *s, const struct resolution *r);

/* Hash all versions in conflict at the path of list[0].  Returns how many of the n are at this path. */
size_t resolve_versions(const struct merge_conflict *list, size_t n, char hex[SHA256_HEX_SIZE]);

/* Mark the resolutions that match the merge's conflicts; returns how many became valid. */
size_t resolve_set_match(struct resolve_set *s, const struct merge *m);
