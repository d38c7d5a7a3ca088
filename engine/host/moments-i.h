/*
 * moments-i.h - states of mounted clones that tokens name, to answer: what changed since?
 *
 * A token is good as long as three things hold: this daemon has had the clone mounted all the time;
 * the clone was neither rolled back nor rebased; and the state is still kept here. A clone that
 * went back could show again the state of an old token, while the asker has seen a state in
 * between; so such a token is worth nothing. An unknown token never means that nothing changed.
 *
 * A kept state is pinned in the store, so a gc keeps files that were deleted since. So there are
 * few, the least recently used goes first, and none stays for long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/lock.h"
#include "cowfs/store/catalog.h"

#define MOMENTS_MAX        64
#define MOMENTS_OF_CLONE   4
#define MOMENTS_KEEP_MS    3600000
#define MOMENTS_TOKEN_SIZE 48

struct moment {
	struct catalog_id mounting; /* of the clone (struct live) */
	uint64_t switches;          /* of its layer, then */
	uint64_t number;
	uint64_t used; /* engine_clock_ms() */
	struct object_id root;
};

struct moments {
	struct store *store;  /* borrowed */
	pthread_mutex_t lock; /* guards what follows; the store's pins are set under it */
	struct moment list[MOMENTS_MAX]; /* most recently used first */
	size_t n;
	uint64_t next;
};

void moments_init(struct moments *m, struct store *s);
void moments_done(struct moments *m); /* they end with the store */

/*
 * Keep the state of a clone that the caller holds, and give it a token.  The newest state of the
 * clone, if that is the same, keeps its token.
 */
NODISCARD int moments_add(struct moments *m, const struct catalog_id *mounting, uint64_t switches,
			  const struct object_id *root, char ret_token[MOMENTS_TOKEN_SIZE],
			  struct err *err);

/* 1 and the root that the token names, pinned for the caller once more; 0: it is worth nothing. */
NODISCARD int moments_find(struct moments *m, const struct catalog_id *mounting, uint64_t switches,
			   const char *token, struct object_id *ret, struct err *err);

void moments_forget(struct moments *m, const struct catalog_id *mounting); /* NULL: all of them */
void moments_expire(struct moments *m); /* those that nobody used for MOMENTS_KEEP_MS */
