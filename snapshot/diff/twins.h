/*
 * twins.h - pairs of directories that differ in nothing but inode numbers and ctimes, with all below.
 *
 * Such pairs have different ids, so a walk has to read both, each time: a captured project and the
 * fetched tree that it was made from have hardly an id in common. Ids are of content, so what was
 * found once stays true. This keeps the pairs that were found last, for any thread; it forgets some
 * as others come, which costs only time.
 */
#pragma once

#include <stdbool.h>

#include "base/lock.h"
#include "cowfs/store/object.h"

struct twin_pair;

struct twins {
	pthread_mutex_t lock;   /* guards what follows; a leaf */
	struct twin_pair *list; /* owned; NULL: none was found yet */
};

void twins_init(struct twins *t);
void twins_done(struct twins *t);

/* In either order.  Without memory nothing is kept. */
void twins_add(struct twins *t, const struct object_id *a, const struct object_id *b);
bool twins_has(struct twins *t, const struct object_id *a, const struct object_id *b);
