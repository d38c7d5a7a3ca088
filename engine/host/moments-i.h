/*
 * moments-i.h - states of mounted clones that somebody is going to ask about: what changed since?
 *
 * A token names one, and is good for as long as three things hold: the clone has been mounted all the
 * time, by this daemon; it was neither rolled back nor rebased; and the state is still kept here.  A
 * clone that goes back could show again what it showed at the time of a token, and whoever looked
 * in between knows something else by then; so such a token is worth nothing.  Nobody may conclude
 * from a token that is unknown here that nothing changed.
 *
 * A kept state is pinned in the store, so a gc leaves what was deleted since.  Therefore they are few,
 * the least recently used goes first, and none stays for long.
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
